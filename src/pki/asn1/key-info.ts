import {
  DerError,
  DerReader,
  derTag,
  readDerOid,
  readOnlyDerValue,
  readBitStringBytes,
} from './der.ts'
import { curveOids, keyOids } from './object-identifiers.ts'

/** Kind of a public key; `other` includes all kinds that are never accepted. */
type KeyInfo =
  | { readonly kind: 'ec'; readonly curve: 'P-256' | 'P-384' | 'P-521' }
  | { readonly kind: 'rsa'; readonly bits: number; readonly exponent: number }
  | { readonly kind: 'ed25519' }
  | { readonly kind: 'other' }

const other = { kind: 'other' } as const

/** Length of an uncompressed point in bytes, by curve. */
const pointBytes = { 'P-256': 65, 'P-384': 97, 'P-521': 133 } as const
const UNCOMPRESSED = 0x04
const ED25519_BYTES = 32

/**
 * Inspects a SubjectPublicKeyInfo without creating a key object. Accepts only one encoding of each
 * key (named curves, uncompressed points, DER), because keys are compared by the hash of the
 * encoding.
 */
export function inspectKey(spki: Uint8Array): KeyInfo {
  try {
    return readKeyInfo(spki)
  } catch (error) {
    if (error instanceof DerError) return other
    throw error
  }
}

function readKeyInfo(spki: Uint8Array): KeyInfo {
  const reader = new DerReader(readOnlyDerValue(spki, derTag.sequence).contents)
  const algorithm = new DerReader(reader.take(derTag.sequence).contents)
  const key = readBitStringBytes(reader.take(derTag.bitString))
  reader.end()
  const kind = readDerOid(algorithm.next())
  const parameters = algorithm.isAtEnd ? null : algorithm.next()
  algorithm.end()
  if (kind === keyOids.ec && parameters !== null) {
    const curve = curveOids.get(readDerOid(parameters))
    if (curve === undefined) return other
    const isWhole = key.length === pointBytes[curve] && key[0] === UNCOMPRESSED
    return isWhole ? { kind: 'ec', curve } : other
  }
  if (kind === keyOids.ed25519 && parameters === null) {
    return key.length === ED25519_BYTES ? { kind: 'ed25519' } : other
  }
  const isRsa = kind === keyOids.rsa && parameters?.whole.toString('hex') === '0500'
  return isRsa ? readRsa(key) : other
}

function readRsa(key: Buffer): KeyInfo {
  const reader = new DerReader(readOnlyDerValue(key, derTag.sequence).contents)
  const modulus = magnitudeOf(reader.take(derTag.integer).contents)
  const exponent = magnitudeOf(reader.take(derTag.integer).contents)
  reader.end()
  const bits = modulus.length * 8 - Math.clz32(modulus[0] ?? 0) + 24
  // Refuses a longer exponent, which would make each signature check many times slower.
  if (exponent.length > 4) return other
  return { kind: 'rsa', bits, exponent: exponent.readUIntBE(0, exponent.length) }
}

/** @throws {DerError} for a number that is negative, zero, or not in its shortest form. */
function magnitudeOf(contents: Buffer): Buffer {
  const [first = 0x80, second = 0] = contents
  if (first > 0 && first < 0x80) return contents
  if (first === 0 && second >= 0x80) return contents.subarray(1)
  throw new DerError('no positive integer in its shortest form')
}

const RSA_BITS_MIN = 2048
const RSA_BITS_MAX = 8192
const RSA_EXPONENT_MAX = 0x7fff_ffff

export const ALLOWED_KEYS_TEXT = 'EC P-256, P-384 or P-521, RSA of 2,048 to 8,192 bits, or Ed25519'

/** Whether identities, routers and authorities may have this kind of key. */
export function isAllowedKey(key: KeyInfo): boolean {
  switch (key.kind) {
    case 'ec':
    case 'ed25519':
      return true
    case 'rsa':
      return (
        key.bits >= RSA_BITS_MIN &&
        key.bits <= RSA_BITS_MAX &&
        key.exponent >= 3 &&
        key.exponent % 2 === 1 &&
        key.exponent <= RSA_EXPONENT_MAX
      )
    case 'other':
      return false
  }
}
