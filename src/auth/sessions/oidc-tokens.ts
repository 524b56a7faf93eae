import { createHash, randomUUID } from 'node:crypto'

import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import { recordedFactorKinds } from '../../fsm/apply/authentication.ts'
import { sessionCertificateFingerprints, isKeyBound } from '../../fsm/apply/session-usability.ts'
import type { Clock } from '../../lib/clock.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { StateView } from '../../ports/state-view.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { Problem } from '../../lib/problems.ts'
import {
  oidcClientIds,
  type OidcToken,
  parseOidcClaims,
  type TokenPurpose,
  tokenTypes,
  unverifiedClaims,
} from '../../pki/oidc-token.ts'
import type { VerifiedJwt } from '../../pki/jwt-verifier.ts'
import type { JwtSigner } from './jwt-signer.ts'

/**
 * The validity of tokens begins this much earlier, because OpenZiti verifiers allow no leeway, and
 * clocks may differ by more than a second.
 */
const EARLIER_SECONDS = 60
/** Value of the type claim that marks TOTP tokens in OpenZiti. */
const TOTP_TOKEN_TYPE = 't'

interface OidcTokenLimits {
  readonly accessTokenMs: number
  readonly refreshTokenMs: number
  readonly oidcSessionMsMax: number
  readonly tokenChecksMax: number
  /** Maximum number of verified access tokens that are cached. */
  readonly verifiedTokensMax: number
}

/** The data of a session from which tokens are created. */
interface TokenSubject {
  readonly session: ApiSession
  readonly identity: Identity
  readonly issuer: string
  readonly scopes: readonly string[]
  /**
   * `nonce` of the authorization request; '' for a refresh, for a device, and if the request had
   * none.
   */
  readonly nonce: string
  /**
   * Number of the refresh token in its session; the log-in issues number 1, and each refresh the
   * next one.
   */
  readonly generation: number
  /**
   * Latest expiry of all tokens, UTC ms. If absent, only the session and the lifetimes of tokens
   * limit their expiry.
   */
  readonly endsAtMsMax?: number
}

/** New tokens of a session; a token that the scopes do not include is null. */
export interface MintedTokens {
  readonly access: string
  readonly refresh: string | null
  readonly id: string | null
  readonly expiresInSeconds: number
}

interface OidcTokensDeps {
  readonly state: Pick<StateView, 'get' | 'findAll' | 'featureLevel'>
  readonly jwt: JwtSigner
  readonly clock: Clock
  readonly limits: OidcTokenLimits
}

/**
 * Tokens of OIDC sessions. Each controller signs with the key of its leaf, and accepts tokens of
 * every current member. This class checks purpose, audience and time; `RequestAuthenticator` checks
 * that the session still exists.
 */
export class OidcTokens {
  readonly #deps: OidcTokensDeps
  /**
   * Verified access tokens, cached because a signature check would cost more than the rest of a
   * read.
   */
  readonly #verified = new Map<string, OidcToken>()
  /**
   * Id of the key that signed each valid access token, for as long as the token object exists.
   */
  readonly #keyIds = new WeakMap<OidcToken, string>()
  readonly #checks: FairShare

  constructor(deps: OidcTokensDeps) {
    this.#deps = deps
    this.#checks = new FairShare(deps.limits.tokenChecksMax)
  }

  async mint(subject: TokenSubject): Promise<MintedTokens> {
    const { limits, clock } = this.#deps
    const nowMs = clock.nowMs()
    const endsAtMs = Math.min(
      subject.session.createdAt + limits.oidcSessionMsMax,
      subject.endsAtMsMax ?? Infinity,
    )
    // @guard oidc/refresh--longest
    const [accessMs, refreshMs] = [limits.accessTokenMs, limits.refreshTokenMs].map((lifetimeMs) =>
      Math.max(1000, Math.min(lifetimeMs, endsAtMs - nowMs)),
    ) as [number, number]
    const hasRefresh = subject.scopes.includes('offline_access')
    const [access, refresh] = await Promise.all([
      this.#sign(subject, 'access', nowMs, accessMs),
      hasRefresh ? this.#sign(subject, 'refresh', nowMs, refreshMs) : null,
    ])
    return {
      access,
      refresh,
      id: subject.scopes.includes('openid')
        ? await this.#signId(subject, access, nowMs, accessMs)
        : null,
      expiresInSeconds: Math.floor(accessMs / 1000),
    }
  }

  /**
   * Returns a token from the cache of verified tokens; null if the token must be verified first.
   */
  recall(text: string): OidcToken | null {
    const token = this.#verified.get(text)
    return token !== undefined && this.isInForce(token) ? token : null
  }

  /**
   * Whether an access token that was verified is still valid. A request may wait in a queue, and a
   * stream may last long; meanwhile the token may expire, or other tokens may replace it in the
   * cache.
   */
  isInForce(token: OidcToken): boolean {
    const { clock, jwt } = this.#deps
    const keyId = this.#keyIds.get(token)
    if (keyId === undefined || clock.nowMs() >= token.expiresAtMs) return false
    // Tokens that a removed member signed become invalid with its removal.
    // @guard oidc/revoked-token--recalled, oidc/tokens--removed
    return jwt.isMemberKey(keyId) && !this.#isRevoked(token)
  }

  /**
   * Verifies a token that may have one of the given purposes. The result `expired` depends only on
   * the token's claims, so the token may be forged.
   * @param source key for fair sharing of the concurrent verifications.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS while too many verifications run, of that source or
   * in total.
   */
  async judge(
    text: string,
    purposes: readonly TokenPurpose[],
    source: string,
  ): Promise<OidcToken | 'invalid' | 'expired'> {
    const found = await this.#verify(text, source)
    if (found === null) return isPast(text, this.#deps.clock.nowMs()) ? 'expired' : 'invalid'
    for (const purpose of purposes) {
      const token = parseOidcClaims(text, found.claims, purpose)
      if (token === null) continue
      // @guard oidc/revoked-token--judged
      if (this.#isRevoked(token)) return 'invalid'
      if (purpose === 'access') this.#remember(token, found.keyId)
      return token
    }
    return 'invalid'
  }

  async #verify(
    text: string,
    source: string,
    isExpiredAllowed = false,
  ): Promise<VerifiedJwt | null> {
    if (!this.#checks.hasRoomFor(source)) {
      throw new Problem('SERVER_TOO_MANY_REQUESTS', { retryAfterSeconds: 1 })
    }
    this.#checks.take(source)
    try {
      return await this.#deps.jwt.verifyWithKey(text, { isExpiredAllowed })
    } finally {
      this.#checks.giveBack(source)
    }
  }

  /** The session that an ID token in `id_token_hint` identifies; the ID token may have expired. */
  async sessionOfHint(
    text: string,
    source: string,
  ): Promise<Pick<OidcToken, 'sessionId' | 'identityId' | 'clientId'> | null> {
    const found = await this.#verify(text, source, true)
    const { z_asid: sessionId, azp: clientId, sub: identityId } = found?.claims ?? {}
    if (typeof clientId !== 'string' || !oidcClientIds.includes(clientId)) return null
    return typeof sessionId === 'string' && typeof identityId === 'string'
      ? { sessionId, identityId, clientId }
      : null
  }

  /**
   * Whether this particular token was revoked. Does not check whether its session has ended,
   * because the session's record shows that.
   */
  #isRevoked({ tokenId }: OidcToken): boolean {
    return this.#deps.state.get('revocation', tokenId)?.type === 'JTI'
  }

  /**
   * Signs a statement that a session submitted a valid code. The token's time of issue is the time
   * at which the session first submitted this code, because a session may submit a code again. The
   * token never expires, because OpenZiti clients require that. A router checks its age, and
   * accepts it only together with an access token of the session.
   */
  async signTotp({
    sessionId,
    identityId,
    clientId,
    issuer,
  }: OidcToken): Promise<{ readonly token: string; readonly issuedAtMs: number }> {
    const { clock, jwt, state } = this.#deps
    const nowMs = clock.nowMs()
    const issuedAtMs = Math.min(nowMs, state.get('apiSession', sessionId)?.mfaPassedAt ?? nowMs)
    const token = await jwt.sign({
      iss: new URL(issuer).origin,
      sub: identityId,
      aud: [clientId],
      iat: Math.floor(issuedAtMs / 1000),
      jti: randomUUID(),
      z_asid: sessionId,
      z_t: TOTP_TOKEN_TYPE,
    })
    return { token, issuedAtMs }
  }

  #remember(token: OidcToken, keyId: string): void {
    const [oldest] = this.#verified.keys()
    if (this.#verified.size >= this.#deps.limits.verifiedTokensMax && oldest !== undefined) {
      this.#verified.delete(oldest)
    }
    this.#verified.set(token.text, token)
    this.#keyIds.set(token, keyId)
  }

  #sign(
    subject: TokenSubject,
    purpose: TokenPurpose,
    nowMs: number,
    lifetimeMs: number,
  ): Promise<string> {
    const { session, scopes } = subject
    const certificates = isKeyBound(session) ? this.#certificatesOf(session) : null
    return this.#deps.jwt.sign({
      ...common(subject, nowMs, lifetimeMs),
      ...identityClaims(subject),
      nbf: Math.floor(nowMs / 1000) - EARLIER_SECONDS,
      jti: randomUUID(),
      scopes: [...scopes],
      z_t: tokenTypes[purpose],
      ...(purpose === 'refresh' ? { generation: subject.generation } : {}),
      z_cfs: certificates,
    })
  }

  /**
   * Fingerprints of the log-in certificate, and of the newest certificate that was issued for the
   * session; if there is neither, of all certificates that the client may present. Never empty,
   * because any client could use a token without fingerprints.
   */
  #certificatesOf(session: ApiSession): readonly string[] {
    const { state } = this.#deps
    const { id, certFingerprint } = session
    const made = state.findAll('sessionCertificate', 'apiSessionId', id)
    const newest = made.toSorted((a, b) => b.revision - a.revision)[0]
    const own = [certFingerprint, newest?.fingerprint ?? null].flatMap((print) => print ?? [])
    // @guard oidc/session-keys--named
    return own.length > 0 ? own : sessionCertificateFingerprints(state, session)
  }

  #signId(
    subject: TokenSubject,
    access: string,
    nowMs: number,
    lifetimeMs: number,
  ): Promise<string> {
    const { session, identity, nonce } = subject
    return this.#deps.jwt.sign({
      ...common(subject, nowMs, lifetimeMs),
      azp: session.clientId,
      at_hash: createHash('sha256').update(access).digest().subarray(0, 16).toString('base64url'),
      name: identity.name,
      z_ia: identity.isAdmin,
      ...(nonce === '' ? {} : { nonce }),
    })
  }
}

/**
 * Whether an OIDC token belongs to the session, whose code must have been redeemed. A session
 * without OIDC accepts only the token that is derived from its id.
 */
export function isTokenForSession(
  { identityId, clientId }: OidcToken,
  session: ApiSession,
): boolean {
  // @guard oidc/tokens--identity
  const isOfSession = session.identityId === identityId && session.clientId === clientId
  return isOfSession && session.clientId !== '' && session.codeHash !== ''
}

/**
 * Authentication methods of the session's log-in (`amr`, RFC 8176), derived only from the session's
 * record.
 */
function methodsOf(session: ApiSession): string[] {
  const methods: string[] = []
  if (session.signerId !== '') methods.push('ext-jwt', `ejs:${session.signerId}`)
  else methods.push(session.certFingerprint === null ? 'password' : 'cert')
  return [...methods, ...recordedFactorKinds(session)]
}

function common({ session, issuer }: TokenSubject, nowMs: number, lifetimeMs: number): JsonObject {
  const nowSeconds = Math.floor(nowMs / 1000)
  return {
    iss: issuer,
    iat: nowSeconds,
    exp: nowSeconds + Math.floor(lifetimeMs / 1000),
    ...sessionClaims(session),
  }
}

/** Claims that depend only on the record of the session. */
export function sessionClaims(session: ApiSession): JsonObject {
  return {
    sub: session.identityId,
    aud: [session.clientId],
    client_id: session.clientId,
    auth_time: Math.floor(session.createdAt / 1000),
    amr: methodsOf(session),
    z_asid: session.id,
  }
}

/** Claims of access and refresh tokens that depend on the records of session and identity. */
export function identityClaims({
  session,
  identity,
}: Pick<TokenSubject, 'session' | 'identity'>): JsonObject {
  return {
    z_aid: session.clientId,
    z_ia: identity.isAdmin,
    z_ra: session.ipAddress,
    z_sdk: null,
    z_env: null,
    z_ice: session.certFingerprint !== null,
    z_cer: false,
    z_ckrr: false,
    z_iccc: session.hasImproperChain,
    ...(session.configTypes.length === 0 ? {} : { z_ct: [...session.configTypes] }),
    ...(session.certFingerprint === null ? {} : { z_acf: session.certFingerprint }),
    ...(session.authenticatorId === '' ? {} : { z_authid: session.authenticatorId }),
    ...(identity.externalId === '' || identity.externalId === null
      ? {}
      : { z_eid: identity.externalId }),
  }
}

function isPast(text: string, nowMs: number): boolean {
  const exp = unverifiedClaims(text)?.['exp']
  return typeof exp === 'number' && exp * 1000 <= nowMs
}
