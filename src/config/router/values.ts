import { isIP } from 'node:net'
import { isAbsolute, resolve } from 'node:path'

import { durationText } from '../../lib/text/duration-text.ts'
import { parseDuration } from '../../lib/text/duration.ts'
import { formatHostPort, type HostPort, parseHostPort } from '../../lib/text/names.ts'
import type { RawValue, RouterValueType } from '../engine/schema.ts'

const TEXT_CHARACTERS_MAX = 4096
const PEM_CHARACTERS_MAX = 64 * 1024
const LIST_ITEMS_MAX = 64
const DAY_MS = 24 * 60 * 60 * 1000

export function integer(min: number, max: number): RouterValueType<number> {
  return {
    expected: `an integer from ${min} to ${max}`,
    read: (raw) =>
      typeof raw === 'number' && Number.isSafeInteger(raw) && raw >= min && raw <= max
        ? raw
        : undefined,
  }
}

/** An integer of milliseconds, without a unit. */
export function milliseconds(min: number, max: number): RouterValueType<number> {
  const type = integer(min, max)
  return { ...type, expected: `an integer of milliseconds from ${min} to ${max}, without a unit` }
}

export function number(min: number, max: number): RouterValueType<number> {
  return {
    expected: `a number from ${min} to ${max}`,
    read: (raw) => (typeof raw === 'number' && raw >= min && raw <= max ? raw : undefined),
  }
}

/** A number with a unit, as `5s`, `1m`, `24h`, `1h30m`; read as milliseconds. */
export function duration(minMs = 0, maxMs = 365 * DAY_MS): RouterValueType<number> {
  return {
    expected: `a duration as 5s, 1m or 24h, from ${durationWords(minMs)} to ${durationWords(maxMs)}`,
    read: (raw) => {
      // Zero without a unit is a duration in Go, and says nothing of what was meant here.
      if (typeof raw !== 'string' || !/[a-zµμ]$/.test(raw) || raw.startsWith('+')) return undefined
      const ms = parseDuration(raw)
      return ms !== null && ms >= minMs && ms <= maxMs ? ms : undefined
    },
    show: durationWords,
  }
}

/** As a person writes it: 24h, 1m30s, 250ms. */
export function durationWords(ms: number): string {
  if (ms === 0 || ms % 1000 !== 0) return durationText(ms)
  const parts = [
    [Math.floor(ms / 3_600_000), 'h'],
    [Math.floor((ms % 3_600_000) / 60_000), 'm'],
    [(ms % 60_000) / 1000, 's'],
  ] as const
  return parts.flatMap(([count, unit]) => (count === 0 ? [] : [`${count}${unit}`])).join('')
}

export function boolean(): RouterValueType<boolean> {
  return {
    expected: 'true or false',
    read: (raw) => (typeof raw === 'boolean' ? raw : undefined),
  }
}

export function choice<const C extends string>(choices: readonly C[]): RouterValueType<C> {
  return {
    expected: choices.length === 1 ? `${choices[0]}` : `one of ${choices.join(', ')}`,
    read: (raw) => choices.find((one) => one === raw),
  }
}

/** The version of the file format: an integer, and not the text of one. */
export function version(only: number): RouterValueType<number> {
  return {
    expected: `${only}, the one version that is supported`,
    read: (raw) => (raw === only ? only : undefined),
  }
}

export function text(
  expected = 'a text that is not empty',
  isValid: (text: string) => boolean = () => true,
): RouterValueType<string> {
  return { expected, read: (raw) => (isText(raw) && isValid(raw) ? raw : undefined) }
}

function isText(raw: RawValue): raw is string {
  return (
    typeof raw === 'string' &&
    raw !== '' &&
    raw.length <= TEXT_CHARACTERS_MAX &&
    !raw.includes('\0')
  )
}

/** Where nothing is a value as well; null then. */
export function optional<T>(type: RouterValueType<T>): RouterValueType<T | null> {
  const { show } = type
  return {
    expected: type.expected,
    read: (raw, context) => (raw === null ? null : type.read(raw, context)),
    ...(show === undefined ? {} : { show: (found) => (found === null ? '' : show(found)) }),
  }
}

/** A list of texts; none when empty. */
export function texts(
  expected = 'a list of texts',
  isValid: (text: string) => boolean = () => true,
): RouterValueType<readonly string[]> {
  return {
    expected,
    read: (raw) => {
      const items = raw === null ? [] : raw
      if (!Array.isArray(items) || items.length > LIST_ITEMS_MAX) return undefined
      const found = (items as readonly RawValue[]).filter(isText)
      return found.length === items.length && found.every(isValid) ? found : undefined
    },
  }
}

/** One text, or a list of one or more. */
export function textOrTexts(
  expected = 'a text, or a list of one or more',
  isValid: (text: string) => boolean = () => true,
): RouterValueType<readonly string[]> {
  const many = texts(expected, isValid)
  return {
    expected,
    read: (raw, context) => {
      if (isText(raw)) return isValid(raw) ? [raw] : undefined
      const found = raw === null ? undefined : many.read(raw, context)
      return found?.length === 0 ? undefined : found
    },
  }
}

export function path(): RouterValueType<string> {
  return {
    expected: 'a path',
    read: (raw, { folder }) => {
      if (!isText(raw)) return undefined
      return isAbsolute(raw) ? resolve(raw) : resolve(folder, raw)
    },
  }
}

/** Certificates or a key: a file, or their PEM text in the configuration itself. */
export interface PemSource {
  readonly path: string | null
  /** Null when it is in a file. */
  readonly pem: string | null
}

const PEM_BEGIN = '-----BEGIN '
const FILE_URL = 'file://'
/** A URL of a key store, which this router reads no keys from. */
const OTHER_STORE = /^(?!file:)[a-z][a-z0-9+.-]*:\/\//i

export function pemSource(): RouterValueType<PemSource> {
  return {
    expected: 'a path, file://PATH, or PEM text after pem:',
    read: (raw, { folder }) => {
      if (typeof raw !== 'string' || raw.trim() === '' || raw.length > PEM_CHARACTERS_MAX) {
        return undefined
      }
      const pem = raw.startsWith('pem:') ? raw.slice('pem:'.length) : raw
      if (pem.trimStart().startsWith(PEM_BEGIN)) return { path: null, pem: pem.trim() }
      if (raw.startsWith('pem:') || raw.includes('\0') || OTHER_STORE.test(raw)) return undefined
      const file = raw.startsWith(FILE_URL) ? raw.slice(FILE_URL.length) : raw
      return file === '' ? undefined : { path: resolve(folder, file), pem: null }
    },
    show: ({ path: file }) => file ?? '(PEM text)',
  }
}

export interface Address extends HostPort {
  readonly protocol: string
  /** As it was written: `tls:host:port`. */
  readonly text: string
}

/** `<protocol>:<host>:<port>` with a port from 0 to 65535. @returns null when the text is none. */
export function parseAddress(written: string): Address | null {
  const at = written.indexOf(':')
  const protocol = written.slice(0, Math.max(0, at))
  const rest = written.slice(at + 1)
  if (!/^[a-z][a-z0-9]{0,15}$/.test(protocol)) return null
  // Port 0 lets the system choose one for a listener, and is no port for anything else.
  const isAnyPort = rest.endsWith(':0')
  const found = parseHostPort(isAnyPort ? `${rest.slice(0, -1)}1` : rest)
  if (found === null || !isHost(found.host)) return null
  return { protocol, host: found.host, port: isAnyPort ? 0 : found.port, text: written }
}

/** Four numbers that are no IPv4 address are no name either. */
function isHost(host: string): boolean {
  return isIP(host) !== 0 || (!/^[0-9.]+$/.test(host) && !host.includes(':'))
}

/** @param isDialed an address to connect to, which has no port 0. */
export function address(protocols: readonly string[], isDialed = false): RouterValueType<Address> {
  return {
    expected: `an address <protocol>:<host>:<port> with the protocol ${protocols.join(' or ')} and a port from ${isDialed ? 1 : 0} to 65535, an IPv6 address in brackets`,
    read: (raw) => {
      const found = isText(raw) ? parseAddress(raw) : null
      if (found === null || !protocols.includes(found.protocol)) return undefined
      return isDialed && found.port === 0 ? undefined : found
    },
    show: ({ text: written }) => written,
  }
}

export function addresses(
  protocols: readonly string[],
  itemsMax: number,
): RouterValueType<readonly Address[]> {
  const type = address(protocols, true)
  return {
    expected: `a list of 1 to ${itemsMax} addresses <protocol>:<host>:<port>, each once, with the protocol ${protocols.join(' or ')}`,
    read: (raw, context) => {
      if (!Array.isArray(raw) || raw.length === 0 || raw.length > itemsMax) return undefined
      const items = raw as readonly YamlItem[]
      const found = items.flatMap((one) => type.read(one, context) ?? [])
      const isEach = new Set(found.map(({ text: written }) => written)).size === items.length
      return isEach ? found : undefined
    },
    show: (found) => found.map(({ text: written }) => written).join(', '),
  }
}

type YamlItem = Exclude<RawValue, readonly unknown[]>

/** `host:port`. */
export function hostPort(): RouterValueType<HostPort> {
  return {
    expected: '<host>:<port> with a port from 1 to 65535, an IPv6 address in brackets',
    read: (raw) => {
      const found = isText(raw) ? parseHostPort(raw) : null
      return found !== null && isHost(found.host) ? found : undefined
    },
    show: formatHostPort,
  }
}

/** What others are told: `<host>:<port>`, or the whole address as other routers want it. */
export function advertised(protocols: readonly string[]): RouterValueType<HostPort> {
  const whole = address(protocols, true)
  const short = hostPort()
  return {
    expected: `<host>:<port> with a port from 1 to 65535, perhaps with the protocol ${protocols.join(' or ')} before it`,
    read: (raw, context) => short.read(raw, context) ?? whole.read(raw, context),
    show: formatHostPort,
  }
}

export const DNS_NAME = /^(?:\*\.)?(?!-)[A-Za-z0-9_-]{1,63}(?:\.(?!-)[A-Za-z0-9_-]{1,63})*\.?$/
const URI = /^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$/
const EMAIL = /^[!-?A-~]+@[A-Za-z0-9._-]+$/

export const dnsNames = texts(
  'a list of DNS names',
  (name) => name.length <= 253 && DNS_NAME.test(name),
)
export const ipAddresses = texts('a list of IP addresses', (name) => isIP(name) !== 0)
export const uris = texts('a list of URIs', (uri) => uri.length <= 2048 && URI.test(uri))
export const emails = texts(
  'a list of mail addresses',
  (mail) => mail.length <= 320 && EMAIL.test(mail),
)

export function cidr(): RouterValueType<string> {
  return text('an IP range as 100.64.0.1/10', (range) => {
    const [ip = '', bits = '', ...rest] = range.split('/')
    const family = isIP(ip)
    const isBits = /^[0-9]{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
    return family !== 0 && rest.length === 0 && isBits
  })
}
