import type { ApiSession } from '../../entities/kinds/api-session.ts'
import { isKeyBound } from '../../fsm/apply/session-usability.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import { isSameJson, type JsonObject } from '../../lib/text/canonical-json.ts'
import { type OidcToken, parseOidcClaims } from '../../pki/oidc-token.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import type { JwtSigner } from './jwt-signer.ts'
import { isTokenForSession, identityClaims, sessionClaims } from './oidc-tokens.ts'
import { isSameAddress } from './same-address.ts'

/**
 * Tolerance for the times in a token, because controllers apply a removal at slightly different
 * times, and their clocks differ.
 */
const LEEWAY_MS = 60_000

interface FormerTokensDeps {
  readonly state: Pick<StateView, 'get'>
  readonly jwt: Pick<JwtSigner, 'verifyFormer'>
  readonly clock: Clock
  readonly limits: { readonly refreshTokenMs: number; readonly tokenChecksMax: number }
}

/**
 * Accepts refresh tokens that a removed controller signed (ADR 48). The removed controller knows
 * every session that existed at its removal and can still sign tokens, so this class compares all
 * claims about the session and its identity with the state. A client can exchange such a token for
 * a token of a current member, but only from the address or with the key of its session, and only
 * until one refresh token lifetime after the removal.
 */
export class FormerMemberTokens {
  readonly #deps: FormerTokensDeps
  readonly #checks: FairShare

  constructor(deps: FormerTokensDeps) {
    this.#deps = deps
    this.#checks = new FairShare(deps.limits.tokenChecksMax)
  }

  /** @throws {Problem} SERVER_TOO_MANY_REQUESTS while too many tokens are verified. */
  async judge(
    text: string,
    caller: Pick<CallerCredentials, 'address' | 'source'>,
  ): Promise<OidcToken | null> {
    const found = await this.#verify(text, caller.source)
    if (found === null) return null
    const { claims, removedAtMs } = found
    const token = parseOidcClaims(text, claims, 'refresh')
    if (token === null || !this.#isOfItsTime(token, removedAtMs)) return null
    if (this.#deps.state.get('revocation', token.tokenId)?.type === 'JTI') return null
    const session = this.#deps.state.get('apiSession', token.sessionId)
    if (session === undefined || !isTokenForSession(token, session)) return null
    // The removed controller could not know sessions that were opened later.
    // @guard tokens-of-a-former-member--later
    if (session.createdAt > removedAtMs + LEEWAY_MS) return null
    // @guard tokens-of-a-former-member--claims
    if (!this.#areClaimsOf(session, claims)) return null
    // If the session is bound to a key, the client proves possession of the key when it exchanges
    // the token.
    // @guard tokens-of-a-former-member--address
    const isHere = isKeyBound(session) || isSameAddress(caller.address, session.ipAddress)
    return isHere ? token : null
  }

  async #verify(text: string, source: string): ReturnType<JwtSigner['verifyFormer']> {
    if (!this.#checks.hasRoomFor(source)) {
      throw new Problem('SERVER_TOO_MANY_REQUESTS', { retryAfterSeconds: 1 })
    }
    this.#checks.take(source)
    try {
      return await this.#deps.jwt.verifyFormer(text)
    } finally {
      this.#checks.giveBack(source)
    }
  }

  /**
   * Whether the times in the token are plausible for its session. The removed controller chooses
   * them, so both the start and the length of the validity are limited.
   */
  #isOfItsTime({ issuedAtMs, expiresAtMs }: OidcToken, removedAtMs: number): boolean {
    const { refreshTokenMs } = this.#deps.limits
    // @guard tokens-of-a-former-member--issued
    if (issuedAtMs > removedAtMs + LEEWAY_MS) return false
    // @guard tokens-of-a-former-member--lifetime
    return expiresAtMs - issuedAtMs <= refreshTokenMs
  }

  #areClaimsOf(session: ApiSession, claims: JsonObject): boolean {
    const identity = this.#deps.state.get('identity', session.identityId)
    if (identity === undefined) return false
    const expected = { ...sessionClaims(session), ...identityClaims({ session, identity }) }
    const given = Object.entries(claims).filter(([name]) => !OWN_CLAIMS.has(name))
    return isSameJson(Object.fromEntries(given), expected)
  }
}

/**
 * Claims that are not compared with the records: they differ from token to token, or the token
 * exchange checks them.
 */
const OWN_CLAIMS: ReadonlySet<string> = new Set([
  'iss',
  'iat',
  'exp',
  'nbf',
  'jti',
  'scopes',
  'generation',
  'z_t',
  'z_cfs',
])
