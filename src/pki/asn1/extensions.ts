import {
  contextTag,
  readDerBoolean,
  DerError,
  DerReader,
  derTag,
  type DerTree,
  type DerValue,
  type Oid,
  readDerOid,
  readOnlyDerValue,
  readDerSmallInteger,
  readInnerDerValues,
} from './der.ts'
import { extensionOids } from './object-identifiers.ts'

const EXTENSIONS_MAX = 64
const PURPOSES_MAX = 64

interface Extension {
  readonly isCritical: boolean
  /** Content of the extension's OCTET STRING. */
  readonly value: Buffer
}

export type Extensions = ReadonlyMap<Oid, Extension>

/**
 * @param sequence an Extensions value (RFC 5280, 4.1).
 * @throws {DerError} also for a repeated extension, because programs would disagree on which of the
 * repeated extensions to use.
 */
export function readExtensions(sequence: DerValue): Extensions {
  if (sequence.tag !== derTag.sequence) throw new DerError('extensions are a sequence')
  const extensions = new Map<Oid, Extension>()
  for (const value of readInnerDerValues(sequence, EXTENSIONS_MAX)) {
    if (value.tag !== derTag.sequence) throw new DerError('an extension is a sequence')
    const reader = new DerReader(value.contents)
    const type = readDerOid(reader.take(derTag.objectIdentifier))
    const critical = reader.optional(derTag.boolean)
    const { contents } = reader.take(derTag.octetString)
    reader.end()
    if (extensions.has(type)) throw new DerError('two extensions of one type')
    extensions.set(type, {
      isCritical: critical !== null && readDerBoolean(critical),
      value: contents,
    })
  }
  return extensions
}

interface BasicConstraints {
  readonly isAuthority: boolean
  readonly pathLengthMax: number | null
}

/** @throws {DerError} */
export function readBasicConstraints(extensions: Extensions): BasicConstraints {
  const extension = extensions.get(extensionOids.basicConstraints)
  if (extension === undefined) return { isAuthority: false, pathLengthMax: null }
  const reader = new DerReader(readOnlyDerValue(extension.value, derTag.sequence).contents)
  const authority = reader.optional(derTag.boolean)
  const pathLength = reader.optional(derTag.integer)
  reader.end()
  return {
    isAuthority: authority !== null && readDerBoolean(authority),
    pathLengthMax: pathLength === null ? null : readDerSmallInteger(pathLength),
  }
}

/** Bit numbers of the KeyUsage extension (RFC 5280, 4.2.1.3). */
export const keyUsageBit = {
  digitalSignature: 0,
  keyEncipherment: 2,
  dataEncipherment: 3,
  keyCertSign: 5,
} as const

/**
 * @returns null if there is no KeyUsage extension, which means that every use is allowed.
 * @throws {DerError}
 */
export function readKeyUsage(extensions: Extensions): ReadonlySet<number> | null {
  const extension = extensions.get(extensionOids.keyUsage)
  if (extension === undefined) return null
  const [unused = 8, ...bytes] = readOnlyDerValue(extension.value, derTag.bitString).contents
  if (unused > 7 || bytes.length > 2) throw new DerError('a key usage out of range')
  const uses = new Set<number>()
  for (let bit = 0; bit < bytes.length * 8; bit += 1) {
    if (((bytes[bit >> 3] ?? 0) & (0x80 >> (bit & 7))) !== 0) uses.add(bit)
  }
  return uses
}

/**
 * @returns null if there is no ExtendedKeyUsage extension, which means that every purpose is
 * allowed.
 * @throws {DerError}
 */
export function readKeyPurposes(extensions: Extensions): readonly Oid[] | null {
  const extension = extensions.get(extensionOids.extendedKeyUsage)
  if (extension === undefined) return null
  return readInnerDerValues(readOnlyDerValue(extension.value, derTag.sequence), PURPOSES_MAX).map(
    readDerOid,
  )
}

/**
 * Key identifier of the subject (RFC 5280, 4.2.1.2); null if there is none.
 * @throws {DerError}
 */
export function readSubjectKeyId(extensions: Extensions): Buffer | null {
  const extension = extensions.get(extensionOids.subjectKeyIdentifier)
  if (extension === undefined) return null
  return readOnlyDerValue(extension.value, derTag.octetString).contents
}

/**
 * Key identifier of the issuer (RFC 5280, 4.2.1.1); null if there is none.
 * @throws {DerError}
 */
export function readAuthorityKeyId(extensions: Extensions): Buffer | null {
  const extension = extensions.get(extensionOids.authorityKeyIdentifier)
  if (extension === undefined) return null
  const reader = new DerReader(readOnlyDerValue(extension.value, derTag.sequence).contents)
  return reader.optional(contextTag(0, false))?.contents ?? null
}

/** @param value content of the extension's OCTET STRING. */
export function encodeExtension(type: Oid, isCritical: boolean, value: DerTree): DerTree {
  const critical: DerTree[] = isCritical ? [[derTag.boolean, Uint8Array.of(0xff)]] : []
  return [derTag.sequence, type, ...critical, [derTag.octetString, value]]
}
