import { isIP } from 'node:net'
import { resolve } from 'node:path'

import { formatHostPort, type HostPort, parseHostPort } from '../../lib/text/names.ts'
import type { ValueType } from '../engine/schema.ts'
import { REDACTED } from '../engine/option-display.ts'
import { isTextValue, listType, textType, textListType } from '../engine/values.ts'

// Value types that only the router's configuration uses.

const PEM_CHARACTERS_MAX = 64 * 1024

/** Version of the file format; must be an integer, not a string. */
export function fileVersionType(only: number): ValueType<number> {
  return {
    expected: `${only}, the one version that is supported`,
    read: (raw) => (raw === only ? only : undefined),
  }
}

/** Certificates or a key, either in a file or as PEM within the configuration. */
export interface PemSource {
  readonly path: string | null
  /** null when the certificates or the key are in a file. */
  readonly pem: string | null
}

const PEM_BEGIN = '-----BEGIN '
const FILE_URL = 'file://'
/** Matches the URL of a key store of a kind that this router does not support. */
const OTHER_STORE = /^(?!file:)[a-z][a-z0-9+.-]*:\/\//i

export function pemSourceType(): ValueType<PemSource> {
  return {
    expected: 'a path, file://PATH, or PEM text after pem:',
    read: (raw, folder) => {
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
    redacted: ({ path: file }) => file ?? REDACTED,
  }
}

export interface Address extends HostPort {
  readonly protocol: string
  /** The address in the notation of the file: `tls:host:port`. */
  readonly text: string
}

/**
 * Parses `<protocol>:<host>:<port>` with a port from 0 to 65535.
 * @returns null when malformed.
 */
export function parseAddress(written: string): Address | null {
  const at = written.indexOf(':')
  const protocol = written.slice(0, Math.max(0, at))
  const rest = written.slice(at + 1)
  if (!/^[a-z][a-z0-9]{0,15}$/.test(protocol)) return null
  // Port 0 is valid only for a listener; it means that the system chooses a port.
  const isAnyPort = rest.endsWith(':0')
  const found = parseHostPort(isAnyPort ? `${rest.slice(0, -1)}1` : rest)
  if (found === null || !isHost(found.host)) return null
  return { protocol, host: found.host, port: isAnyPort ? 0 : found.port, text: written }
}

/**
 * Whether a text is an IP address or a host name. Digits and dots that form no IPv4 address are no
 * host name.
 */
function isHost(host: string): boolean {
  return isIP(host) !== 0 || (!/^[0-9.]+$/.test(host) && !host.includes(':'))
}

/** @param isDialed true for an address to which the router connects; its port cannot be 0. */
export function addressType(protocols: readonly string[], isDialed = false): ValueType<Address> {
  return {
    expected: `an address <protocol>:<host>:<port> with the protocol ${protocols.join(' or ')} and a port from ${isDialed ? 1 : 0} to 65535, an IPv6 address in brackets`,
    read: (raw) => {
      const found = isTextValue(raw) ? parseAddress(raw) : null
      if (found === null || !protocols.includes(found.protocol)) return undefined
      return isDialed && found.port === 0 ? undefined : found
    },
    show: ({ text: written }) => written,
  }
}

export function addressListType(
  protocols: readonly string[],
  itemsMax: number,
): ValueType<readonly Address[]> {
  const expected = `a list of 1 to ${itemsMax} addresses <protocol>:<host>:<port>, each once, with the protocol ${protocols.join(' or ')}`
  const settings = { expected, itemsMin: 1, itemsMax, isDistinct: true }
  return listType(addressType(protocols, true), settings)
}

/** A host and a port: `host:port`. */
export function hostPortType(): ValueType<HostPort> {
  return {
    expected: '<host>:<port> with a port from 1 to 65535, an IPv6 address in brackets',
    read: (raw) => {
      const found = isTextValue(raw) ? parseHostPort(raw) : null
      return found !== null && isHost(found.host) ? found : undefined
    },
    show: formatHostPort,
  }
}

/**
 * An advertised address: `<host>:<port>`, optionally preceded by a protocol, which OpenZiti's
 * routers require for links.
 */
export function advertisedAddressType(protocols: readonly string[]): ValueType<HostPort> {
  const whole = addressType(protocols, true)
  const short = hostPortType()
  return {
    expected: `<host>:<port> with a port from 1 to 65535, optionally after a protocol (${protocols.join(' or ')}) and a colon`,
    read: (raw, folder) => short.read(raw, folder) ?? whole.read(raw, folder),
    show: formatHostPort,
  }
}

export const DNS_NAME = /^(?:\*\.)?(?!-)[A-Za-z0-9_-]{1,63}(?:\.(?!-)[A-Za-z0-9_-]{1,63})*\.?$/
const URI = /^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$/
const EMAIL = /^[!-?A-~]+@[A-Za-z0-9._-]+$/

/**
 * Alternative names of one type. Empty entries are ignored: a template writes an empty entry for
 * each value that its user has not set.
 */
function alternativeNames(
  expected: string,
  isValid: (name: string) => boolean,
): ValueType<readonly string[]> {
  const names = textListType(expected, isValid)
  const isWritten = (entry: unknown): boolean => entry !== null && entry !== ''
  return {
    ...names,
    read: (raw, folder) => names.read(Array.isArray(raw) ? raw.filter(isWritten) : raw, folder),
  }
}

export const dnsNamesType = alternativeNames(
  'a list of DNS names',
  (name) => name.length <= 253 && DNS_NAME.test(name),
)
export const ipAddressesType = alternativeNames(
  'a list of IP addresses',
  (name) => isIP(name) !== 0,
)
export const urisType = alternativeNames(
  'a list of URIs',
  (uri) => uri.length <= 2048 && URI.test(uri),
)
export const emailsType = alternativeNames(
  'a list of mail addresses',
  (mail) => mail.length <= 320 && EMAIL.test(mail),
)

export function cidrType(): ValueType<string> {
  return textType('an IP range such as 100.64.0.1/10', (range) => {
    const [ip = '', bits = '', ...rest] = range.split('/')
    const family = isIP(ip)
    const isBits = /^[0-9]{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
    return family !== 0 && rest.length === 0 && isBits
  })
}
