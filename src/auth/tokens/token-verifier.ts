import { hash } from 'node:crypto'
import { errors, jwtVerify } from 'jose'
import type { ExternalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { Clock } from '../../lib/clock.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { Problem } from '../../lib/problems.ts'
import type { RefusalCause, LogInRefusalReason } from '../../lib/refusal-reason.ts'
import { addressShareKey } from '../../lib/bounds/source.ts'
import { textClaim } from './claims.ts'
import type { KeySet, KeySets } from './key-sets.ts'
import { isTokenTooLong, readToken, type UnverifiedToken } from './token-text.ts'
import { verificationKeyFromCertificate, type VerificationKey } from './verification-key.ts'
import type { StateView } from '../../ports/state-view.ts'

interface TokenVerifierLimits {
  readonly tokenClockSkewMs: number
  readonly tokenChecksMax: number
  readonly verifiedTokensMax: number
  readonly verifiedTokenMsMax: number
}

/** A verified external JWT. The state determines which identity it belongs to. */
export interface VerifiedToken {
  readonly signerId: string
  /**
   * Revision of the signer that verified the token; apply refuses the token if the signer was
   * changed since.
   */
  readonly signerRevision: number
  /** Value of the claim by which the signer identifies identities. */
  readonly claim: string
  /** UTC ms, including the accepted clock skew. */
  readonly expiresAtMs: number
}

/** A refused JWT: a reason for the client, and a cause for the operator. */
export interface RefusedToken {
  /** For the client. `expired`: valid except for its time; only its owner can know that. */
  readonly error: 'invalid' | 'expired'
  /** For the operator. */
  readonly cause: RefusalCause
}
/** Result of verifying a JWT for a log-in or as a factor. */
export type JwtVerificationResult = VerifiedToken | RefusedToken
/** Result of verifying a JWT, with its claims. */
export type ClaimsFinding =
  | { readonly verified: VerifiedToken; readonly claims: JsonObject }
  | RefusedToken

function invalid(
  reason: LogInRefusalReason,
  signer?: ExternalJwtSigner,
  claim?: string,
): RefusedToken {
  const at = signer === undefined ? {} : { signerId: signer.id }
  return { error: 'invalid', cause: { reason, ...at, ...(claim === undefined ? {} : { claim }) } }
}

/** A finding, and the published keys by which it was made, if any. */
interface Judged {
  readonly finding: ClaimsFinding
  readonly keySet: KeySet | null
}

interface Remembered {
  readonly verified: VerifiedToken
  /**
   * Keys that the signer publishes; null: the token is verified with the certificate in the
   * signer's record.
   */
  readonly keySet: KeySet | null
  /** Monotonic ms. */
  readonly endsAtMs: number
}

interface TokenVerifierDeps {
  readonly state: StateView
  readonly clock: Clock
}

/**
 * Verifies external JWTs with the enabled signer whose issuer they name; at most one signer has
 * this issuer. The token cannot choose how it is verified: signer and `kid` select the key, and the
 * algorithm must fit the key.
 */
export class TokenVerifier {
  readonly #state: TokenVerifierDeps['state']
  readonly #clock: Clock
  readonly #keySets: KeySets
  readonly #limits: TokenVerifierLimits
  readonly #checks: FairShare
  /**
   * Verified tokens by their SHA-256, so that no token itself is stored; in order of verification.
   */
  readonly #remembered = new Map<string, Remembered>()
  /** Parsed certificates of signers, by PEM. */
  #certificates = new Map<string, VerificationKey | null>()

  constructor({ state, clock }: TokenVerifierDeps, keySets: KeySets, limits: TokenVerifierLimits) {
    this.#state = state
    this.#clock = clock
    this.#keySets = keySets
    this.#limits = limits
    this.#checks = new FairShare(limits.tokenChecksMax)
  }

  /** Returns a token that was verified before; null: the token has to be verified. */
  recall(text: string): VerifiedToken | null {
    const digest = hash('sha256', text, 'base64url')
    const known = this.#remembered.get(digest)
    if (known === undefined) return null
    if (this.#isStillGood(known)) return known.verified
    this.#remembered.delete(digest)
    return null
  }

  /**
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS while too many tokens are being verified, of that
   * address or in total.
   */
  async judge(address: string, text: string): Promise<JwtVerificationResult> {
    const known = this.recall(text)
    if (known !== null) return known
    const found = await this.verifyClaims(address, text)
    return 'error' in found ? found : found.verified
  }

  /**
   * Verifies the signature and returns all claims of the token.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS.
   */
  async verifyClaims(address: string, text: string): Promise<ClaimsFinding> {
    const token = readToken(text)
    if (token === null) return unreadableTokenRefusal(text)
    const signer = this.signerOf(token)
    if (signer === undefined) return invalid('TOKEN_ISSUER_UNKNOWN', undefined, 'iss')
    const { finding, keySet } = await this.#verifyInTurn(address, token, signer)
    if (!('error' in finding)) this.#remember(token.text, finding.verified, keySet)
    return finding
  }

  /**
   * Verifies a token with a given signer, even if it is disabled. The result serves a test: it is
   * not cached, so the token logs nobody in.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS.
   */
  async verifyForTest(
    address: string,
    token: UnverifiedToken,
    signer: ExternalJwtSigner,
  ): Promise<ClaimsFinding> {
    return (await this.#verifyInTurn(address, token, signer)).finding
  }

  async #verifyInTurn(
    address: string,
    token: UnverifiedToken,
    signer: ExternalJwtSigner,
  ): Promise<Judged> {
    const sharer = addressShareKey(address)
    if (!this.#checks.hasRoomFor(sharer)) {
      throw new Problem('SERVER_TOO_MANY_REQUESTS', { retryAfterSeconds: 1 })
    }
    this.#checks.take(sharer)
    try {
      return await this.#verify(token, signer)
    } finally {
      this.#checks.giveBack(sharer)
    }
  }

  /** The enabled signer that has the issuer of a token. */
  signerOf({ issuer }: Pick<UnverifiedToken, 'issuer'>): ExternalJwtSigner | undefined {
    const signer = this.#state.find('externalJwtSigner', 'issuer', issuer)
    return signer?.enabled === true ? signer : undefined
  }

  /** The enabled signer that a token names. The token is not verified, so this proves nothing. */
  signerNamedIn(text: string): ExternalJwtSigner | undefined {
    const token = readToken(text)
    return token === null ? undefined : this.signerOf(token)
  }

  async #verify(token: UnverifiedToken, signer: ExternalJwtSigner): Promise<Judged> {
    const { audience, jwksEndpoint } = signer
    // Without an audience, a token that was issued for any other service would be accepted.
    // @guard forged-tokens--no-audience
    if (audience === '') return { finding: invalid('TOKEN_AUDIENCE', signer, 'aud'), keySet: null }
    const isPublished = jwksEndpoint !== null && jwksEndpoint !== ''
    const keySet = isPublished ? await this.#keySets.holding(signer, token.kid) : null
    const keys = isPublished ? (keySet?.keys ?? []) : this.#certificateKeys(signer)
    const noKeys = isPublished && keySet === null ? 'TOKEN_KEYS_UNREACHABLE' : 'TOKEN_KEY_UNKNOWN'
    let finding: ClaimsFinding = invalid(noKeys, signer)
    for (const key of keys) {
      // @guard forged-tokens--kid
      if (key.kid !== token.kid) continue
      finding = invalid('TOKEN_ALGORITHM', signer)
      // @guard forged-tokens--algorithm
      if (!key.algorithms.has(token.algorithm)) continue
      finding = await this.#verifyBy(key, token, signer)
      if (!('error' in finding) || finding.error === 'expired') break
    }
    return { finding, keySet }
  }

  async #verifyBy(
    { key, notBeforeMs, notAfterMs }: VerificationKey,
    { text, algorithm }: UnverifiedToken,
    signer: ExternalJwtSigner,
  ): Promise<ClaimsFinding> {
    const nowMs = this.#clock.nowMs()
    if (nowMs < notBeforeMs || nowMs > notAfterMs) return invalid('TOKEN_KEY_EXPIRED', signer)
    const skewMs = this.#limits.tokenClockSkewMs
    try {
      const { payload } = await jwtVerify(text, key, {
        algorithms: [algorithm],
        issuer: signer.issuer,
        // @guard forged-tokens--audience
        audience: signer.audience,
        // @guard forged-tokens--end
        requiredClaims: ['exp'],
        clockTolerance: skewMs / 1000,
        currentDate: new Date(nowMs),
      })
      const { iat, exp = 0 } = payload
      // JSON has numbers that are no dates: 1e400 is parsed as Infinity, and would never expire.
      // @guard forged-tokens--end-of-time
      if (exp > EXPIRY_SECONDS_MAX) return invalid('TOKEN_CLAIM_INVALID', signer, 'exp')
      if (iat !== undefined && !(iat * 1000 <= nowMs + skewMs)) {
        return invalid('TOKEN_NOT_YET_VALID', signer, 'iat')
      }
      const claims = payload as JsonObject
      const claim = textClaim(claims, signer.claimsProperty)
      if (claim === null) return invalid('TOKEN_CLAIM_MISSING', signer, signer.claimsProperty)
      const { id: signerId, revision: signerRevision } = signer
      const expiresAtMs = Math.min(exp * 1000 + skewMs, notAfterMs)
      return { verified: { signerId, signerRevision, claim, expiresAtMs }, claims }
    } catch (error) {
      if (error instanceof errors.JOSEError) return refusedBy(error, signer)
      throw error
    }
  }

  #certificateKeys({ certPem, kid }: ExternalJwtSigner): readonly VerificationKey[] {
    if (certPem === null || kid === '') return []
    const name = `${kid} ${certPem}`
    let key = this.#certificates.get(name)
    if (key === undefined) {
      if (this.#certificates.size >= CERTIFICATES_MAX) this.#certificates = new Map()
      key = verificationKeyFromCertificate(certPem, kid)
      this.#certificates.set(name, key)
    }
    return key === null ? [] : [key]
  }

  #remember(text: string, verified: VerifiedToken, keySet: KeySet | null): void {
    const { verifiedTokensMax, verifiedTokenMsMax } = this.#limits
    if (this.#remembered.size >= verifiedTokensMax) {
      for (const [oldest] of this.#remembered) {
        this.#remembered.delete(oldest)
        break
      }
    }
    const endsAtMs = this.#clock.monotonicMs() + verifiedTokenMsMax
    this.#remembered.set(hash('sha256', text, 'base64url'), { verified, keySet, endsAtMs })
  }

  #isStillGood({ verified, keySet, endsAtMs }: Remembered): boolean {
    if (this.#clock.monotonicMs() >= endsAtMs) return false
    const signer = this.#state.get('externalJwtSigner', verified.signerId)
    if (signer === undefined || !this.isInForce(verified)) return false
    // Keys that were fetched since may lack the one that verified the token.
    // @guard forged-tokens--withdrawn
    return keySet === null || this.#keySets.known(signer) === keySet
  }

  /** Whether a verified token is still valid, by the clock and by the record of its signer. */
  isInForce({ signerId, signerRevision, expiresAtMs }: VerifiedToken): boolean {
    if (this.#clock.nowMs() >= expiresAtMs) return false
    const signer = this.#state.get('externalJwtSigner', signerId)
    return signer?.enabled === true && signer.revision === signerRevision
  }
}

/** The refusal of a token that cannot be parsed. */
export function unreadableTokenRefusal(text: string): RefusedToken {
  return invalid(isTokenTooLong(text) ? 'TOKEN_TOO_LONG' : 'TOKEN_MALFORMED')
}

function refusedBy(error: errors.JOSEError, signer: ExternalJwtSigner): RefusedToken {
  if (error instanceof errors.JWTExpired) {
    return {
      error: 'expired',
      cause: { reason: 'TOKEN_EXPIRED', signerId: signer.id, claim: 'exp' },
    }
  }
  if (!(error instanceof errors.JWTClaimValidationFailed)) return invalid('TOKEN_SIGNATURE', signer)
  const reason = claimReasons[error.claim] ?? 'TOKEN_CLAIM_INVALID'
  const isTime = error.reason === 'check_failed' && error.claim === 'nbf'
  return invalid(isTime ? 'TOKEN_NOT_YET_VALID' : reason, signer, error.claim)
}

const claimReasons: Readonly<Record<string, LogInRefusalReason>> = {
  aud: 'TOKEN_AUDIENCE',
  iss: 'TOKEN_ISSUER_UNKNOWN',
}

const CERTIFICATES_MAX = 64
/** The end of the year 9999, the last one that RFC 3339 can express. */
const EXPIRY_SECONDS_MAX = 253_402_300_799
