import {
  contextTag,
  DerError,
  DerReader,
  derTag,
  type DerTree,
  type DerValue,
  readOnlyDerValue,
} from './der.ts'
import { type DistinguishedName, readDistinguishedName } from './distinguished-name.ts'

/** Tags of the GeneralName types (RFC 5280, 4.2.1.6) that this program supports. */
export const generalNameTag = {
  email: contextTag(1, false),
  dns: contextTag(2, false),
  directory: contextTag(4),
  uri: contextTag(6, false),
  ip: contextTag(7, false),
} as const

/** Alternative names by type, each in the order of the extension. */
export interface AlternativeNames {
  readonly emails: readonly string[]
  readonly dnsNames: readonly string[]
  readonly uris: readonly string[]
  /** IP addresses, each 4 or 16 bytes long. */
  readonly ipAddresses: readonly Uint8Array[]
  readonly directoryNames: readonly DistinguishedName[]
  /** Tags of names of unsupported types; the names themselves are ignored. */
  readonly otherTags: readonly number[]
}

export const noAlternativeNames: AlternativeNames = {
  emails: [],
  dnsNames: [],
  uris: [],
  ipAddresses: [],
  directoryNames: [],
  otherTags: [],
}

/**
 * @param extension content of the extension's OCTET STRING.
 * @throws {DerError} also when there are more than `namesMax` names, or a name contains an invalid
 * character.
 */
export function readAlternativeNames(extension: Uint8Array, namesMax: number): AlternativeNames {
  const emails: string[] = []
  const dnsNames: string[] = []
  const uris: string[] = []
  const ipAddresses: Uint8Array[] = []
  const directoryNames: DistinguishedName[] = []
  const otherTags: number[] = []
  const reader = new DerReader(readOnlyDerValue(extension, derTag.sequence).contents)
  for (let count = 0; !reader.isAtEnd; count += 1) {
    if (count === namesMax) throw new DerError(`more than ${namesMax} alternative names`)
    const value = reader.next()
    if (value.tag === generalNameTag.email) emails.push(readIa5String(value))
    else if (value.tag === generalNameTag.dns) dnsNames.push(readIa5String(value))
    else if (value.tag === generalNameTag.uri) uris.push(readIa5String(value))
    else if (value.tag === generalNameTag.ip) ipAddresses.push(ipAddress(value))
    else if (value.tag === generalNameTag.directory) directoryNames.push(readDirectoryName(value))
    else otherTags.push(value.tag)
  }
  return { emails, dnsNames, uris, ipAddresses, directoryNames, otherTags }
}

/**
 * An ASCII string without control characters. Other strings are rejected: in other programs, a NUL
 * or a line break inside a name has made one name look like another.
 */
export function readIa5String({ contents }: DerValue): string {
  for (const byte of contents) {
    if (byte < 0x20 || byte > 0x7e) throw new DerError('a character that a name can not have')
  }
  return contents.toString('latin1')
}

/**
 * Reads a name of the type directoryName (RFC 5280, 4.2.1.6).
 * @throws {DerError}
 */
export function readDirectoryName({ contents }: DerValue): DistinguishedName {
  return readDistinguishedName(readOnlyDerValue(contents, derTag.sequence))
}

function ipAddress({ contents }: DerValue): Uint8Array {
  if (contents.length !== 4 && contents.length !== 16) {
    throw new DerError('an IP address has 4 or 16 bytes')
  }
  return contents
}

/**
 * Encodes the content of the extension's OCTET STRING. Omits directory names and names of
 * unsupported types.
 */
export function encodeAlternativeNames(names: AlternativeNames): DerTree {
  const texts = (tag: number, list: readonly string[]): DerTree[] =>
    list.map((text) => [tag, Buffer.from(text, 'latin1')])
  return [
    derTag.sequence,
    ...texts(generalNameTag.dns, names.dnsNames),
    ...texts(generalNameTag.email, names.emails),
    ...names.ipAddresses.map((address): DerTree => [generalNameTag.ip, address]),
    ...texts(generalNameTag.uri, names.uris),
  ]
}

/**
 * Formats an IPv4 address in dotted decimal notation, and an IPv6 address as in RFC 5952, such as
 * `::1`.
 */
export function formatIp(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  const groups: number[] = []
  for (let at = 0; at < bytes.length; at += 2) {
    groups.push(((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0))
  }
  const { from, length } = longestZeros(groups)
  const hex = (part: readonly number[]): string => part.map((group) => group.toString(16)).join(':')
  if (length < 2) return hex(groups)
  return `${hex(groups.slice(0, from))}::${hex(groups.slice(from + length))}`
}

function longestZeros(groups: readonly number[]): { from: number; length: number } {
  let best = { from: 0, length: 0 }
  for (let from = 0; from < groups.length; from += 1) {
    let length = 0
    while (groups[from + length] === 0) length += 1
    if (length > best.length) best = { from, length }
  }
  return best
}
