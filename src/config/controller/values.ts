import { isIP } from 'node:net'
import { isAbsolute, resolve } from 'node:path'

import { parsePattern } from '../../lib/text/text-pattern.ts'
import { isControllerId, isTrustDomain, parseHostPort } from '../../lib/text/names.ts'

/** `cluster`: equal on every controller, and part of the fingerprint that peers compare. */
export type Scope = 'node' | 'cluster'

/**
 * How one value is read. `read` gets what YAML gave, or the text of an environment variable through
 * `fromText`.
 */
export interface ValueType<T> {
  /** Completes the sentence "expected …". */
  readonly expected: string
  /**
   * @param folder relative paths start there. @returns undefined when the value is not acceptable.
   */
  read(raw: unknown, folder: string): T | undefined
  /** An environment variable's text as the YAML value it stands for. */
  fromText(text: string): unknown
}

export const required: unique symbol = Symbol('required')

export interface Option<T> {
  readonly kind: 'option'
  readonly type: ValueType<T>
  readonly default: T | typeof required
  readonly scope: Scope
  readonly why: string
  /** Its value may hold a credential, and is shown to nobody. */
  readonly isSecret: boolean
}

export interface Section<F> {
  readonly kind: 'section'
  readonly fields: F
  readonly why: string
}

/**
 * A list of like sections; required unless it may be empty, as there is no sensible one to fall
 * back on.
 */
export interface List<F> {
  readonly kind: 'list'
  readonly fields: F
  readonly itemsMin: 0 | 1
  readonly itemsMax: number
  readonly why: string
}

export type Node = Option<unknown> | Section<Fields> | List<Fields>
export interface Fields {
  readonly [key: string]: Node
}

export type ValuesOf<F> = { readonly [K in keyof F]: ValueOf<F[K]> }
type ValueOf<N> =
  N extends Option<infer T>
    ? T
    : N extends Section<infer F>
      ? ValuesOf<F>
      : N extends List<infer F>
        ? readonly ValuesOf<F>[]
        : never

export function option<T>(
  type: ValueType<T>,
  options: {
    readonly default: T | typeof required
    readonly scope: Scope
    readonly why: string
    readonly isSecret?: boolean
  },
): Option<T> {
  return { kind: 'option', type, isSecret: false, ...options }
}

export function section<F>(why: string, fields: F): Section<F> {
  return { kind: 'section', fields, why }
}

export function list<F>(itemsMax: number, why: string, fields: F): List<F> {
  return { kind: 'list', fields, itemsMin: 1, itemsMax, why }
}

/** None or more; none where it is left out. */
export function optionalList<F>(itemsMax: number, why: string, fields: F): List<F> {
  return { ...list(itemsMax, why, fields), itemsMin: 0 }
}

const asIs = (text: string): unknown => text

export function integer(min: number, max: number): ValueType<number> {
  return {
    expected: `an integer from ${min} to ${max}`,
    read: (raw) =>
      typeof raw === 'number' && Number.isSafeInteger(raw) && raw >= min && raw <= max
        ? raw
        : undefined,
    fromText: (text) => (/^-?[0-9]{1,16}$/.test(text) ? Number(text) : text),
  }
}

export function boolean(): ValueType<boolean> {
  return {
    expected: 'true or false',
    read: (raw) => (typeof raw === 'boolean' ? raw : undefined),
    fromText: (text) => (text === 'true' ? true : text === 'false' ? false : text),
  }
}

export function choice<const C extends string>(choices: readonly C[]): ValueType<C> {
  return {
    expected: `one of ${choices.join(', ')}`,
    read: (raw) => choices.find((one) => one === raw),
    fromText: asIs,
  }
}

/** One or more of the choices, each once. As text: separated by commas. */
export function choices<const C extends string>(of: readonly C[]): ValueType<readonly C[]> {
  return {
    expected: `a list of one or more of ${of.join(', ')}, each once`,
    read(raw) {
      if (!Array.isArray(raw) || raw.length === 0 || raw.length > of.length) return undefined
      const found = of.filter((one) => raw.includes(one))
      return found.length === raw.length ? found : undefined
    },
    fromText: (text) => text.split(',').map((one) => one.trim()),
  }
}

/** None or more of the choices, each once. As text: separated by commas. */
export function choicesOrNone<const C extends string>(of: readonly C[]): ValueType<readonly C[]> {
  const some = choices(of)
  return {
    expected: `a list of none or more of ${of.join(', ')}, each once`,
    read: (raw, folder) => (Array.isArray(raw) && raw.length === 0 ? [] : some.read(raw, folder)),
    fromText: (value) => (value === '' ? [] : some.fromText(value)),
  }
}

/** Text, `.`, `.*`, `^`, `$` and `|` of regular expressions; '' is for everything. */
export function pattern(): ValueType<string> {
  return text(
    'a pattern of text, ".", ".*", "^", "$" and "|", at most 256 characters',
    (value) => parsePattern(value) !== null,
  )
}

function text(expected: string, isValid: (text: string) => boolean): ValueType<string> {
  return {
    expected,
    read: (raw) => (typeof raw === 'string' && isValid(raw) ? raw : undefined),
    fromText: asIs,
  }
}

export function controllerId(): ValueType<string> {
  return text(
    "1 to 64 letters, digits, '.', '_' or '-', the first a letter or digit",
    isControllerId,
  )
}

export function trustDomain(): ValueType<string> {
  return text("1 to 255 lower-case letters, digits, '.', '_' or '-'", isTrustDomain)
}

/** Checked for its form only: whether the host resolves can change from hour to hour. */
export function hostPort(): ValueType<string> {
  return text(
    'host:port with a port from 1 to 65535, an IPv6 address in brackets',
    (value) => parseHostPort(value) !== null,
  )
}

export function optionalHostPort(): ValueType<string | null> {
  const type = hostPort()
  return {
    ...type,
    expected: `${type.expected}; or null`,
    read: (raw, folder) => (raw === null ? null : type.read(raw, folder)),
    fromText: (value) => (value === '' ? null : value),
  }
}

/** None or more of them, each once. As text: separated by commas. */
export function hostPorts(itemsMax: number): ValueType<readonly string[]> {
  return {
    expected: `a list of up to ${itemsMax} host:port, each once`,
    read(raw) {
      if (!Array.isArray(raw) || raw.length > itemsMax) return undefined
      const texts = raw.filter((one): one is string => typeof one === 'string')
      const isEach = texts.length === raw.length && new Set(texts).size === texts.length
      return isEach && texts.every((one) => parseHostPort(one) !== null) ? texts : undefined
    },
    fromText: (value) => (value === '' ? [] : value.split(',').map((one) => one.trim())),
  }
}

export function addressPorts(itemsMax: number): ValueType<readonly string[]> {
  const { read, fromText } = hostPorts(itemsMax)
  return {
    expected: `a list of up to ${itemsMax} address:port, each once, with IP addresses`,
    read(raw, folder) {
      const found = read(raw, folder)
      return found?.every((one) => isIP(parseHostPort(one)?.host ?? '') !== 0) === true
        ? found
        : undefined
    },
    fromText,
  }
}

/** Of IPv4 or IPv6, as `address/prefix`. As text: separated by commas. */
export function networks(itemsMax: number): ValueType<readonly string[]> {
  return {
    expected: `a list of up to ${itemsMax} networks like 10.0.0.0/8, each once`,
    read(raw) {
      if (!Array.isArray(raw) || raw.length > itemsMax || !raw.every(isNetwork)) return undefined
      return new Set(raw).size === raw.length ? raw : undefined
    },
    fromText: (value) => (value === '' ? [] : value.split(',').map((one) => one.trim())),
  }
}

function isNetwork(value: unknown): value is string {
  const [, address = '', prefix = ''] = /^([^/]{2,45})\/([0-9]{1,3})$/.exec(String(value)) ?? []
  const version = isIP(address)
  return typeof value === 'string' && version !== 0 && Number(prefix) <= (version === 4 ? 32 : 128)
}

const WORD_LENGTH_MAX = 4096

/**
 * A command with its arguments, none of them seen by a shell; an empty list: no command. As text: a
 * JSON list.
 */
export function command(wordsMax: number): ValueType<readonly string[]> {
  return {
    expected: `a list of up to ${wordsMax} words, the first of them the absolute path of a program`,
    read(raw) {
      if (!Array.isArray(raw) || raw.length > wordsMax || !raw.every(isWord)) return undefined
      return raw.length === 0 || isAbsolute(raw[0] ?? '') ? raw : undefined
    },
    fromText(value) {
      try {
        return value === '' ? [] : (JSON.parse(value) as unknown)
      } catch {
        return value
      }
    },
  }
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && value.length <= WORD_LENGTH_MAX && !value.includes('\0')
}

const PATH_LENGTH_MAX = 4096

/**
 * Relative to the folder of the configuration file; from the environment, to the working folder.
 */
export function path(): ValueType<string> {
  return {
    expected: 'a path',
    read(raw, folder) {
      if (typeof raw !== 'string' || raw === '' || raw.length > PATH_LENGTH_MAX) return undefined
      if (raw.includes('\0')) return undefined
      return isAbsolute(raw) ? resolve(raw) : resolve(folder, raw)
    },
    fromText: asIs,
  }
}

export function optionalPath(): ValueType<string | null> {
  const type = path()
  return {
    ...type,
    expected: `${type.expected}; or null`,
    read: (raw, folder) => (raw === null ? null : type.read(raw, folder)),
    fromText: (text) => (text === '' ? null : text),
  }
}
