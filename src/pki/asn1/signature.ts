import { constants, type KeyObject, verify } from 'node:crypto'

import {
  contextTag,
  DerError,
  DerReader,
  derTag,
  type DerTree,
  type DerValue,
  type Oid,
  readDerOid,
  readOnlyDerValue,
  readDerSmallInteger,
  encodeTagged,
} from './der.ts'
import {
  brokenSignatureAlgorithms,
  hashOids,
  keyOids,
  signatureOids,
} from './object-identifiers.ts'

export type HashAlgorithm = 'sha256' | 'sha384' | 'sha512'

/** A signature algorithm; `kind` is the kind of key that it requires (`rsa-pss`: an RSA key). */
export type SignatureAlgorithm =
  | { readonly kind: 'rsa' | 'ec'; readonly hash: HashAlgorithm }
  | { readonly kind: 'rsa-pss'; readonly hash: HashAlgorithm; readonly saltBytes: number }
  | { readonly kind: 'ed25519' }

const plain: ReadonlyMap<Oid, SignatureAlgorithm> = new Map<Oid, SignatureAlgorithm>([
  [signatureOids.sha256WithRsa, { kind: 'rsa', hash: 'sha256' }],
  [signatureOids.sha384WithRsa, { kind: 'rsa', hash: 'sha384' }],
  [signatureOids.sha512WithRsa, { kind: 'rsa', hash: 'sha512' }],
  [signatureOids.ecdsaWithSha256, { kind: 'ec', hash: 'sha256' }],
  [signatureOids.ecdsaWithSha384, { kind: 'ec', hash: 'sha384' }],
  [signatureOids.ecdsaWithSha512, { kind: 'ec', hash: 'sha512' }],
  [keyOids.ed25519, { kind: 'ed25519' }],
])

const SALT_BYTES_MAX = 512

/**
 * @param identifier an AlgorithmIdentifier.
 * @returns the algorithm or, if it is unsupported, words that complete the sentence "it is signed
 * …".
 * @throws {DerError}
 */
export function readSignatureAlgorithm(identifier: Uint8Array): SignatureAlgorithm | string {
  const reader = new DerReader(readOnlyDerValue(identifier, derTag.sequence).contents)
  const type = readDerOid(reader.next())
  const parameters = reader.isAtEnd ? null : reader.next()
  reader.end()
  const broken = brokenSignatureAlgorithms.get(type)
  if (broken !== undefined) return `with ${broken}, which is broken`
  if (type === signatureOids.rsaPss) return readPss(parameters)
  const algorithm = plain.get(type)
  if (algorithm === undefined) return 'in a way that is not accepted here'
  // RFC 5758, 3.2 requires ECDSA parameters to be absent, but mbed TLS 2 writes NULL, as is usual
  // for RSA.
  const allowsNull = algorithm.kind !== 'ed25519'
  if (parameters !== null && (!allowsNull || parameters.tag !== derTag.null)) {
    throw new DerError('a signature algorithm with parameters that it can not have')
  }
  return algorithm
}

/** Reads RSASSA-PSS parameters. An omitted hash or mask means SHA-1 (RFC 4055, 3.1). */
function readPss(parameters: DerValue | null): SignatureAlgorithm | string {
  const sha1 = 'with SHA-1, which is broken'
  if (parameters === null) return sha1
  const reader = new DerReader(readOnlyDerValue(parameters.whole, derTag.sequence).contents)
  const hash = reader.optional(contextTag(0))
  const mask = reader.optional(contextTag(1))
  const salt = reader.optional(contextTag(2))
  const trailer = reader.optional(contextTag(3))
  reader.end()
  if (hash === null || mask === null) return sha1
  const name = hashOf(readOnlyDerValue(hash.contents, derTag.sequence))
  const maskReader = new DerReader(readOnlyDerValue(mask.contents, derTag.sequence).contents)
  const isMask1 = readDerOid(maskReader.next()) === signatureOids.maskGeneration1
  const maskHash = hashOf(maskReader.take(derTag.sequence))
  if (name === null || maskHash !== name || !isMask1 || trailer !== null) {
    return 'in a way that is not accepted here'
  }
  const saltBytes =
    salt === null ? 20 : readDerSmallInteger(readOnlyDerValue(salt.contents, derTag.integer))
  if (saltBytes > SALT_BYTES_MAX) throw new DerError('a salt that is too long')
  return { kind: 'rsa-pss', hash: name, saltBytes }
}

function hashOf(identifier: DerValue): HashAlgorithm | null {
  return hashOids.get(readDerOid(new DerReader(identifier.contents).next())) ?? null
}

/**
 * Verifies a signature; returns false also when the key is not of the kind that the algorithm
 * requires.
 */
export function isSignedBy(
  key: KeyObject,
  algorithm: SignatureAlgorithm,
  bytes: Uint8Array,
  signature: Uint8Array,
): boolean {
  const kind = algorithm.kind === 'rsa-pss' ? 'rsa' : algorithm.kind
  if (key.asymmetricKeyType !== kind) return false
  try {
    if (algorithm.kind === 'ed25519') return verify(null, bytes, key, signature)
    if (algorithm.kind !== 'rsa-pss') return verify(algorithm.hash, bytes, key, signature)
    const padding = constants.RSA_PKCS1_PSS_PADDING
    const parameters = { key, padding, saltLength: algorithm.saltBytes }
    return verify(algorithm.hash, bytes, parameters, signature)
  } catch {
    // OpenSSL throws an error for some malformed signatures, which count as invalid.
    return false
  }
}

/** The algorithm with which an authority's key signs; null for an unsupported kind of key. */
export function signingAlgorithm(
  key: KeyObject,
): { readonly hash: HashAlgorithm; readonly identifier: Buffer } | null {
  if (key.asymmetricKeyType === 'rsa') {
    return { hash: 'sha256', identifier: identify(signatureOids.sha256WithRsa, [derTag.null]) }
  }
  switch (key.asymmetricKeyType === 'ec' ? key.asymmetricKeyDetails?.namedCurve : null) {
    case 'prime256v1':
      return { hash: 'sha256', identifier: identify(signatureOids.ecdsaWithSha256) }
    case 'secp384r1':
      return { hash: 'sha384', identifier: identify(signatureOids.ecdsaWithSha384) }
    case 'secp521r1':
      return { hash: 'sha512', identifier: identify(signatureOids.ecdsaWithSha512) }
    default:
      return null
  }
}

function identify(type: Oid, ...parameters: readonly DerTree[]): Buffer {
  return encodeTagged(derTag.sequence, type, ...parameters)
}
