import { createPublicKey, type JsonWebKey, type KeyObject, X509Certificate } from 'node:crypto'
import { isObject } from '../../entities/check-fields.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'

const RSA_BITS_MIN = 2048
/** Maximum bits: verifying with a larger key takes too long for a log-in. */
const RSA_BITS_MAX = 8192

/**
 * A public key of a signer, with the signature algorithms that it supports. Only the key determines
 * the algorithms, never the token.
 */
export interface VerificationKey {
  readonly kid: string
  readonly algorithms: ReadonlySet<string>
  readonly key: KeyObject
  /**
   * Validity of the certificate in the signer's record, UTC ms; unlimited for a key from a JWK set.
   */
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

const rsaAlgorithms: ReadonlySet<string> = new Set([
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
])
const ecAlgorithms: Readonly<Record<string, ReadonlySet<string>>> = {
  prime256v1: new Set(['ES256']),
  secp384r1: new Set(['ES384']),
  secp521r1: new Set(['ES512']),
}
/** The two algorithm names of Ed25519 (RFC 8037, RFC 9864). */
const ed25519Algorithms: ReadonlySet<string> = new Set(['EdDSA', 'Ed25519'])
const none: ReadonlySet<string> = new Set()

/**
 * The signature algorithms for a key (RFC 7518, 3.1); empty for a key that is not public, an RSA
 * key that is too short or too long, and an unsupported type.
 */
export function supportedSignatureAlgorithms(key: KeyObject): ReadonlySet<string> {
  if (key.type !== 'public') return none
  const { modulusLength = 0, namedCurve = '' } = key.asymmetricKeyDetails ?? {}
  if (key.asymmetricKeyType === 'rsa') {
    return modulusLength >= RSA_BITS_MIN && modulusLength <= RSA_BITS_MAX ? rsaAlgorithms : none
  }
  if (key.asymmetricKeyType === 'ed25519') return ed25519Algorithms
  return key.asymmetricKeyType === 'ec' ? (ecAlgorithms[namedCurve] ?? none) : none
}

/**
 * The key in a certificate; null if the key's type is not supported or the certificate is
 * unreadable.
 */
export function verificationKeyFromCertificate(pem: string, kid: string): VerificationKey | null {
  try {
    const certificate = new X509Certificate(pem)
    const key = certificate.publicKey
    const algorithms = supportedSignatureAlgorithms(key)
    if (algorithms.size === 0) return null
    const notBeforeMs = certificate.validFromDate.getTime()
    return { kid, algorithms, key, notBeforeMs, notAfterMs: certificate.validToDate.getTime() }
  } catch {
    return null
  }
}

/**
 * One entry of a JWK set (RFC 7517); null if the key has no `kid`, is not for signatures, is
 * symmetric or unreadable, or names an algorithm that does not fit the key. If the entry contains a
 * certificate, the key of the certificate is used.
 */
export function verificationKeyFromJwk(jwk: Json): VerificationKey | null {
  if (!isObject(jwk)) return null
  const { kid, use, key_ops: operations, alg } = jwk
  if (typeof kid !== 'string' || kid === '') return null
  if (!isUnset(use) && use !== 'sig') return null
  if (!isUnset(operations) && !isForSignatures(operations)) return null
  const key = publicKeyOf(jwk)
  if (key === null) return null
  const fitting = supportedSignatureAlgorithms(key)
  const algorithms = isUnset(alg) ? fitting : new Set([...fitting].filter((one) => one === alg))
  if (algorithms.size === 0) return null
  return { kid, algorithms, key, notBeforeMs: -Infinity, notAfterMs: Infinity }
}

/**
 * Whether a field counts as unused: programs that write all fields of a key write null or an empty
 * value for unused ones.
 */
function isUnset(value: Json | undefined): boolean {
  return value === undefined || value === null || value === ''
}

/**
 * Whether the key may verify signatures (RFC 7517, 4.3). Also accepts `sign`, because some
 * providers publish the operations of the private key.
 */
function isForSignatures(operations: Json | undefined): boolean {
  if (!Array.isArray(operations)) return false
  const names = operations as readonly Json[]
  return names.length === 0 || names.includes('verify') || names.includes('sign')
}

function publicKeyOf(jwk: JsonObject): KeyObject | null {
  const { kty, x5c } = jwk
  const [first] = Array.isArray(x5c) ? (x5c as readonly unknown[]) : []
  // A key without `kty` is accepted if it has a certificate, which shows the type of the key.
  const isKnown =
    kty === 'RSA' || kty === 'EC' || kty === 'OKP' || (isUnset(kty) && typeof first === 'string')
  if (!isKnown) return null
  try {
    if (typeof first === 'string')
      return new X509Certificate(Buffer.from(first, 'base64')).publicKey
    const { n, e, crv, x, y } = jwk
    // Reads only these fields, so that a private key that a provider publishes by mistake is
    // ignored.
    const parameters =
      kty === 'RSA' ? { kty, n, e } : kty === 'OKP' ? { kty, crv, x } : { kty, crv, x, y }
    return createPublicKey({ key: parameters as JsonWebKey, format: 'jwk' })
  } catch {
    return null
  }
}
