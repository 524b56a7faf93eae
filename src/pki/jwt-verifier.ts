import type { KeyObject } from 'node:crypto'

import { decodeProtectedHeader, errors, jwtVerify } from 'jose'

import type { JsonObject } from '../lib/text/canonical-json.ts'
import { CertificateError, parseCertificate } from './certificate.ts'

/** Maximum characters of a token; longer tokens are rejected without parsing. */
export const JWT_CHARACTERS_MAX = 16 * 1024

/** A certificate whose key signs tokens. */
export interface TokenSigningCertificate {
  /** Hex SHA-1 of the certificate; a token's header contains it. */
  readonly kid: string
  readonly key: KeyObject
  /**
   * Hex SHA-256 of the SubjectPublicKeyInfo, which stays the same when the certificate is renewed.
   */
  readonly keyId: string
  readonly algorithm: string
}

/** Claims of a verified token, and the id of the key that signed it. */
export interface VerifiedJwt {
  readonly claims: JsonObject
  readonly keyId: string
}

/**
 * Verifies that one of the keys signed a token and that the token's times (`exp`, `nbf`) are valid;
 * null otherwise. If `isExpiredAllowed` is true, `exp` may have passed. The `kid` only selects the
 * key to try first. The caller must check issuer, audience and purpose.
 */
export async function verifyJwt(
  token: string,
  leaves: readonly TokenSigningCertificate[],
  nowMs: number,
  isExpiredAllowed = false,
): Promise<VerifiedJwt | null> {
  if (token.length > JWT_CHARACTERS_MAX) return null
  const kid = tokenKeyId(token)
  const ordered = leaves.toSorted((a, b) => Number(b.kid === kid) - Number(a.kid === kid))
  const currentDate = new Date(nowMs)
  for (const { key, keyId, algorithm } of ordered) {
    try {
      const { payload } = await jwtVerify(token, key, { algorithms: [algorithm], currentDate })
      return { claims: payload as JsonObject, keyId }
    } catch (error) {
      if (isExpiredAllowed && error instanceof errors.JWTExpired) {
        return { claims: error.payload as JsonObject, keyId }
      }
      // This key did not sign the token, or the token is not valid now: try the next key.
    }
  }
  return null
}

/** @throws {CertificateError} */
export function parseTokenSigningCertificate(
  certificate: Uint8Array | string,
): TokenSigningCertificate {
  const { sha1, native, publicKeySha256 } = parseCertificate(certificate)
  const key = native.publicKey
  const keyId = Buffer.from(publicKeySha256).toString('hex')
  return { kid: sha1, key, keyId, algorithm: keyJwtAlgorithm(key) }
}

/** The unverified `kid` in the header of a token; null if there is none. */
export function tokenKeyId(token: string): string | null {
  try {
    return decodeProtectedHeader(token).kid ?? null
  } catch {
    return null
  }
}

const ecAlgorithms: Readonly<Record<string, string>> = {
  prime256v1: 'ES256',
  secp384r1: 'ES384',
  secp521r1: 'ES512',
}

/**
 * The JWT algorithm of a key (RFC 7518, 3.1).
 * @throws {CertificateError} `unreadable` for an unsupported kind of key.
 */
export function keyJwtAlgorithm(key: KeyObject): string {
  if (key.asymmetricKeyType === 'rsa') return 'RS256'
  const algorithm = ecAlgorithms[key.asymmetricKeyDetails?.namedCurve ?? '']
  if (algorithm !== undefined) return algorithm
  throw new CertificateError('unreadable', 'tokens are signed by EC or RSA keys alone')
}
