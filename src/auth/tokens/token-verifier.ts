import { hash } from 'node:crypto'
import { errors, jwtVerify } from 'jose'
import type { ExternalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { Clock } from '../../lib/clock.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { Problem } from '../../lib/problems.ts'
import type { RefusalCause, LogInRefusalReason } from '../../lib/refusal-reason.ts'
import { addressShareKey } from '../../lib/bounds/source-network.ts'
import { selectTextClaim } from './claims.ts'
import type { FetchedKeySet, SignerKeyCache } from './signer-key-cache.ts'
import { isTokenTooLong, parseUnverifiedToken, type UnverifiedToken } from './unverified-token.ts'
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
   * Revision of the signer's record at the verification; the state machine refuses the token if the
   * record has changed since.
   */
  readonly signerRevision: number
  /** Value of the claim that identifies the identity. */
  readonly claim: string
  /**
   * Expiry of the token plus the accepted clock skew, but at most the expiry of the signer's
   * certificate; UTC ms.
   */
  readonly expiresAtMs: number
}

/** A refused JWT: an error for the client, and a cause for the operator. */
export interface RefusedToken {
  /**
   * Error for the client. `expired`: signature, issuer and audience are valid, but `exp` has
   * passed. A token that is not valid yet gets `invalid`.
   */
  readonly error: 'invalid' | 'expired'
  /** Cause of the refusal, for the operator only. */
  readonly cause: RefusalCause
}
/** Result of verifying a JWT for a log-in or as a factor. */
export type JwtVerificationResult = VerifiedToken | RefusedToken
/** Result of verifying a JWT, with its claims. */
export type JwtClaimsResult =
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

/** A result, and the published keys with which the token was verified, if any. */
interface Judged {
  readonly finding: JwtClaimsResult
  readonly keySet: FetchedKeySet | null
}

interface Remembered {
  readonly verified: VerifiedToken
  /**
   * The signer's published keys at the verification; null if the token was verified with the
   * certificate in the signer's record.
   */
  readonly keySet: FetchedKeySet | null
  /** Time from which the token must be verified again, monotonic ms. */
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
  readonly #keySets: SignerKeyCache
  readonly #limits: TokenVerifierLimits
  readonly #checks: FairShare
  /**
   * Cache of verified tokens by their SHA-256, so that no token itself is stored; in order of
   * verification.
   */
  readonly #remembered = new Map<string, Remembered>()
  /** Parsed certificates of signers, by PEM. */
  #certificates = new Map<string, VerificationKey | null>()

  constructor(
    { state, clock }: TokenVerifierDeps,
    keySets: SignerKeyCache,
    limits: TokenVerifierLimits,
  ) {
    this.#state = state
    this.#clock = clock
    this.#keySets = keySets
    this.#limits = limits
    this.#checks = new FairShare(limits.tokenChecksMax)
  }

  /** Returns the cached result for a token; null if the token must be verified first. */
  recall(text: string): VerifiedToken | null {
    const digest = hash('sha256', text, 'base64url')
    const known = this.#remembered.get(digest)
    if (known === undefined) return null
    if (this.#isStillGood(known)) return known.verified
    this.#remembered.delete(digest)
    return null
  }

  /**
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS while too many tokens are being verified, for that
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
  async verifyClaims(address: string, text: string): Promise<JwtClaimsResult> {
    const token = parseUnverifiedToken(text)
    if (token === null) return unreadableTokenRefusal(text)
    const signer = this.signerOf(token)
    if (signer === undefined) return invalid('TOKEN_ISSUER_UNKNOWN', undefined, 'iss')
    const { finding, keySet } = await this.#verifyInTurn(address, token, signer)
    if (!('error' in finding)) this.#remember(token.text, finding.verified, keySet)
    return finding
  }

  /**
   * Verifies a token with a given signer, even if the signer is disabled. The result is only for a
   * test: it is not cached, so no log-in can use it.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS.
   */
  async verifyForTest(
    address: string,
    token: UnverifiedToken,
    signer: ExternalJwtSigner,
  ): Promise<JwtClaimsResult> {
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
    const token = parseUnverifiedToken(text)
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
    let finding: JwtClaimsResult = invalid(noKeys, signer)
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
  ): Promise<JwtClaimsResult> {
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
      // Refuses an expiry that is not a valid date: the JSON number 1e400 is parsed as Infinity,
      // and the token would never expire.
      // @guard forged-tokens--end-of-time
      if (exp > EXPIRY_SECONDS_MAX) return invalid('TOKEN_CLAIM_INVALID', signer, 'exp')
      if (iat !== undefined && !(iat * 1000 <= nowMs + skewMs)) {
        return invalid('TOKEN_NOT_YET_VALID', signer, 'iat')
      }
      const claims = payload as JsonObject
      const claim = selectTextClaim(claims, signer.claimsProperty)
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

  #remember(text: string, verified: VerifiedToken, keySet: FetchedKeySet | null): void {
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
    // If newer keys were fetched, the token must be verified again: the newer keys may lack the key
    // that verified the token.
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
/** The end of the year 9999, the last year that RFC 3339 can express. */
const EXPIRY_SECONDS_MAX = 253_402_300_799
