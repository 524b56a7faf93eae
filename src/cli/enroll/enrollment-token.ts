import { compactVerify, decodeJwt, decodeProtectedHeader } from 'jose'

import { type Certificate, CertificateError } from '../../pki/certificate.ts'
import { keyJwtAlgorithm, JWT_CHARACTERS_MAX } from '../../pki/jwt-verifier.ts'
import { EnrollmentFault, EnrollmentRefusedError } from './enrollment-fault.ts'
import { isControllerAddress } from '../../router/controllers/endpoints-file.ts'
import { controllerLimits } from '../../router/controllers/limits.ts'
import { isoTime } from '../../lib/text/format-time.ts'

const CLAIM_CHARACTERS_MAX = 256
/** The command prints claims on the terminal, so they must not contain control characters. */
const PRINTABLE = /^[\x21-\x7e]+$/
const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/

/** Contents of an enrollment token. Do not trust them before `checkTokenSignature`. */
export interface EnrollmentToken {
  readonly jwt: string
  /** `https://host:port` of the controller that created the token. */
  readonly origin: string
  /** ID of the identity, the router or the CA. */
  readonly subject: string
  /** Enrollment method: `ott`, `ottca`, `updb`, `ca`, or a method that is not for identities. */
  readonly method: string
  /** The one-time token itself; for the method `ca`, only the ID of the CA. */
  readonly secret: string
  /** UTC ms; null for the token of a third-party CA, which does not expire. */
  readonly expiresAtMs: number | null
  /**
   * SHA-1 of the certificate whose key signed the token, according to the token; used only in
   * messages.
   */
  readonly keyId: string | null
  /** Addresses of controllers for the router, `tls:host:port`. */
  readonly controllers: readonly string[]
}

/**
 * @throws {EnrollmentFault} when the text is not a JWT, or lacks a claim that an enrollment needs.
 */
export function readEnrollmentToken(text: string): EnrollmentToken {
  const jwt = text.trim()
  if (jwt.length > JWT_CHARACTERS_MAX || !COMPACT.test(jwt)) {
    throw new EnrollmentFault(
      'not an enrollment token: expected one line of three parts separated by dots; copy it completely',
    )
  }
  const { claims, keyId } = decoded(jwt)
  return {
    jwt,
    origin: originIn(claims['iss']),
    subject: textIn(claims, 'sub'),
    method: textIn(claims, 'em'),
    secret: textIn(claims, 'jti'),
    expiresAtMs: Number.isFinite(claims['exp']) ? Number(claims['exp']) * 1000 : null,
    keyId,
    controllers: controllersIn(claims['ctrls']),
  }
}

type Claims = Readonly<Record<string, unknown>>

function decoded(jwt: string): { readonly claims: Claims; readonly keyId: string | null } {
  try {
    const { kid } = decodeProtectedHeader(jwt)
    return { claims: decodeJwt(jwt), keyId: typeof kid === 'string' ? kid : null }
  } catch (error) {
    const message = 'the token is malformed: truncated or edited; copy it again'
    throw new EnrollmentFault(message, { cause: error })
  }
}

function controllersIn(claim: unknown): string[] {
  if (!Array.isArray(claim)) return []
  const addresses = (claim as readonly unknown[]).filter((one) => typeof one === 'string')
  return addresses.filter(isControllerAddress).slice(0, controllerLimits.controllersMax)
}

function textIn(claims: Claims, name: string): string {
  const value = claims[name]
  const isText = typeof value === 'string' && value.length <= CLAIM_CHARACTERS_MAX
  if (isText && PRINTABLE.test(value)) return value
  throw new EnrollmentFault(
    `not an enrollment token: invalid ${JSON.stringify(name)}; ask an administrator for an enrollment token`,
  )
}

function originIn(issuer: unknown): string {
  const url = typeof issuer === 'string' ? URL.parse(issuer) : null
  const isPlain =
    url?.protocol === 'https:' &&
    url.pathname === '/' &&
    [url.username, url.password, url.search, url.hash].every((part) => part === '')
  if (isPlain) return url.origin
  throw new EnrollmentFault(
    'the token names no controller: "iss" is not https://host:port; ask an administrator for an enrollment token',
  )
}

/**
 * Verifies that the key in the server's certificate signed the token, which excludes a man in the
 * middle. The algorithm follows from the key, not from the header of the token.
 * @throws {EnrollmentFault}
 */
export async function checkTokenSignature(
  { jwt, origin, keyId }: EnrollmentToken,
  leaf: Certificate,
): Promise<void> {
  const { publicKey } = leaf.native
  try {
    await compactVerify(jwt, publicKey, { algorithms: [keyJwtAlgorithm(publicKey)] })
  } catch (error) {
    if (error instanceof CertificateError) {
      const message = `the certificate of ${origin} has an unsupported key type; it may not be a controller`
      throw new EnrollmentFault(message, { cause: error })
    }
    const message =
      keyId === leaf.sha1
        ? `invalid token signature: truncated or edited; copy it again`
        : `the controller at ${origin} did not sign this token: it belongs to another cluster, the token was edited, the controller was replaced after it created the token, or the connection is intercepted; nothing was sent, ask an administrator for a new token`
    throw new EnrollmentFault(message, { cause: error })
  }
}

/**
 * @param nowMs current time by the controller's clock, UTC.
 * @throws {EnrollmentRefusedError}
 */
export function checkTokenTime({ expiresAtMs }: EnrollmentToken, nowMs: number): void {
  if (expiresAtMs === null || nowMs < expiresAtMs) return
  throw new EnrollmentRefusedError(
    'ENROLLMENT_EXPIRED',
    `the token expired at ${isoTime(expiresAtMs)}; an administrator can refresh the enrollment to create a new token`,
  )
}
