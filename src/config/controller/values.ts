import { isIP } from 'node:net'
import { isAbsolute } from 'node:path'

import { isControllerId, isTrustDomain, parseHostPort } from '../../lib/text/names.ts'
import { parsePattern } from '../../lib/text/text-pattern.ts'
import type { RawValue, ValueType } from '../engine/schema.ts'
import { choiceType, listType, optionalType, textType } from '../engine/values.ts'

// Value types that only the controller's configuration uses.

/** The given type or null; an empty environment variable means null. */
export function nullableType<T>(type: ValueType<T>): ValueType<T | null> {
  return { ...optionalType(type), expected: `${type.expected}; or null`, show: String }
}

/** One or more of the choices, without duplicates, in the order of `of`. */
export function choicesType<const C extends string>(of: readonly C[]): ValueType<readonly C[]> {
  return choicesFrom(1, of)
}

/** Zero or more of the choices, without duplicates. */
export function choicesOrNoneType<const C extends string>(
  of: readonly C[],
): ValueType<readonly C[]> {
  return choicesFrom(0, of)
}

function choicesFrom<C extends string>(itemsMin: 0 | 1, of: readonly C[]): ValueType<readonly C[]> {
  const some = itemsMin === 0 ? 'none or more' : 'one or more'
  const expected = `a list of ${some} of ${of.join(', ')}, each once`
  const many = listType(choiceType(of), { expected, itemsMin, isDistinct: true })
  return {
    ...many,
    read: (raw, folder) => {
      const found = many.read(raw, folder)
      return found === undefined ? undefined : of.filter((one) => found.includes(one))
    },
  }
}

/** A pattern in the syntax of {@link parsePattern}; '' matches everything. */
export function patternType(): ValueType<string> {
  return {
    expected: 'a pattern of text, ".", ".*", "^", "$" and "|", at most 256 characters',
    read: (raw) => (typeof raw === 'string' && parsePattern(raw) !== null ? raw : undefined),
  }
}

export function controllerIdType(): ValueType<string> {
  return textType(
    "1 to 64 letters, digits, '.', '_' or '-', the first a letter or digit",
    isControllerId,
  )
}

export function trustDomainType(): ValueType<string> {
  return textType("1 to 255 lower-case letters, digits, '.', '_' or '-'", isTrustDomain)
}

/**
 * A `host:port` string. Only the syntax is checked: whether the host name resolves may change
 * later.
 */
export function hostPortTextType(): ValueType<string> {
  return textType('host:port with a port from 1 to 65535, an IPv6 address in brackets', isHostPort)
}

function isHostPort(value: string): boolean {
  return parseHostPort(value) !== null
}

/** First path segments that the APIs use, so that no other pages can use them. */
const TAKEN_PATHS = new Set([
  '/console',
  '/edge',
  '/fabric',
  '/health-checks',
  '/metrics',
  '/oidc',
  '/version',
])

/** One path segment that is not reserved for an API. */
export function mountPathType(): ValueType<string> {
  return textType(
    'a slash and one name of letters, digits, "-" or "_", which no API takes',
    (value) => /^\/[A-Za-z0-9_-]{1,64}$/.test(value) && !TAKEN_PATHS.has(value),
  )
}

/** A list of strings without duplicates. */
function distinctTexts(
  itemsMax: number,
  items: string,
  isItem: (item: string) => boolean,
): ValueType<readonly string[]> {
  const expected = `a list of up to ${itemsMax} ${items}`
  return listType(textType(items, isItem), { expected, itemsMax, isDistinct: true })
}

export function hostPortTextsType(itemsMax: number): ValueType<readonly string[]> {
  return distinctTexts(itemsMax, 'host:port, each once', isHostPort)
}

/**
 * One `host:port`, or a list of them; null, no value, or an empty environment variable means an
 * empty list.
 */
export function hostPortOrListType(itemsMax: number): ValueType<readonly string[]> {
  const expected = `host:port with a port from 1 to 65535, an IPv6 address in brackets; a list of up to ${itemsMax} of them, each once; or null`
  const many = listType(hostPortTextType(), { expected, itemsMax, isDistinct: true })
  return {
    ...many,
    read: (raw, folder) => many.read(typeof raw === 'string' ? [raw] : (raw ?? []), folder),
  }
}

/**
 * DNS names without wildcards, and IP addresses without brackets: the hosts that a controller may
 * request when it joins.
 */
export function hostNamesType(itemsMax: number): ValueType<readonly string[]> {
  return distinctTexts(itemsMax, 'DNS names or IP addresses, each once, without ports', isHostName)
}

const HOST_LABEL = /^(?!-)[A-Za-z0-9-]{1,63}(?<!-)$/
const HOST_CHARACTERS_MAX = 253

function isHostName(value: string): boolean {
  if (isIP(value) !== 0) return !value.includes('%')
  // Rejects a name whose last label is a number, because browsers parse it as an IPv4 address.
  const labels = value.split('.')
  const endsAsName = !/^[0-9]+$/.test(labels.at(-1) ?? '')
  const isShort = value.length <= HOST_CHARACTERS_MAX
  return isShort && endsAsName && labels.every((label) => HOST_LABEL.test(label))
}

export function ipPortListType(itemsMax: number): ValueType<readonly string[]> {
  return distinctTexts(
    itemsMax,
    'address:port, each once, with IP addresses',
    (one) => isIP(parseHostPort(one)?.host ?? '') !== 0,
  )
}

/** IPv4 or IPv6 networks in CIDR notation. */
export function cidrListType(itemsMax: number): ValueType<readonly string[]> {
  return distinctTexts(itemsMax, 'networks like 10.0.0.0/8, each once', isNetwork)
}

function isNetwork(value: string): boolean {
  const [, address = '', prefix = ''] = /^([^/]{2,45})\/([0-9]{1,3})$/.exec(value) ?? []
  const version = isIP(address)
  return version !== 0 && Number(prefix) <= (version === 4 ? 32 : 128)
}

const WORD_LENGTH_MAX = 4096

/**
 * A command with its arguments, executed without a shell; an empty list means no command. In an
 * environment variable, the command is a JSON list.
 */
export function commandType(wordsMax: number): ValueType<readonly string[]> {
  return {
    expected: `a list of up to ${wordsMax} words, the first of them the absolute path of a program`,
    read(raw) {
      if (!Array.isArray(raw) || raw.length > wordsMax || !raw.every(isWord)) return undefined
      return raw.length === 0 || isAbsolute(raw[0] ?? '') ? raw : undefined
    },
    fromText(value) {
      try {
        return value === '' ? [] : (JSON.parse(value) as RawValue)
      } catch {
        return value
      }
    },
  }
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && value.length <= WORD_LENGTH_MAX && !value.includes('\0')
}
