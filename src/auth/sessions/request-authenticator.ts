import { Problem } from '../../lib/problems.ts'
import type { ApiSession } from '../../entities/kinds/api-session.ts'
import { lacksSessionFactor } from '../../fsm/apply/authentication.ts'
import {
  isUsableWithCertificate,
  isNotBoundToApi,
  isAcceptedByManagement,
} from '../../fsm/apply/session-usability.ts'
import {
  type ApiName,
  canCallOperation,
  permissionOnApi,
  type Permission,
  type CalledOperation,
} from '../principal/permissions.ts'
import { isMonitoringClient } from '../principal/monitoring-client.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import type { Caller, MonitoringClient, SessionPrincipal } from '../principal/principal.ts'
import type { SessionPermission } from '../../lib/permissions.ts'
import type { ExternalJwtChallenge } from '../tokens/external-jwt-challenge.ts'
import { missingFactorChallenge, type ExternalJwtFactor } from '../principal/external-jwt-factor.ts'
import type { VerifiedToken } from '../tokens/token-verifier.ts'
import type { SessionLookup, SessionTracker } from './session-tracker.ts'
import type { AcceptedSessionToken, SessionTokenSigner } from './session-token-signer.ts'
import type { PresentedCertificates } from '../../pki/verify/client-chain.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { Clock } from '../../lib/clock.ts'
import { type OidcToken, looksLikeAccessToken, unverifiedClaims } from '../../pki/oidc-token.ts'
import { isTokenForSession, type OidcTokens } from './oidc-tokens.ts'
import { isSameAddress } from './same-address.ts'
import type { TokenKeys } from '../../ports/token-keys.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type { NetworkAuthorities } from '../certificates/network-authorities.ts'

/**
 * The reason that a 401 response gives in WWW-Authenticate (RFC 6750 wording, as OpenZiti uses it).
 */
export type ChallengeReason = 'missing' | 'invalid' | 'expired' | BearerChallenge
/** The reason in WWW-Authenticate for a refused access token, which is a bearer token. */
type BearerChallenge = 'bearer-invalid' | 'bearer-expired'

/** Result of admitting a request. */
export type RequestAdmission =
  | { readonly isAdmitted: true; readonly principal: SessionPrincipal | MonitoringClient }
  | {
      readonly isAdmitted: false
      /**
       * The caller, if its session is valid but lacks the permission; null if the session is
       * invalid.
       */
      readonly principal: SessionPrincipal | null
      readonly challenge: ChallengeReason | ExternalJwtChallenge | null
    }

/** An operation and the permission that it requires. */
interface Permitted extends CalledOperation {
  readonly permission: SessionPermission
  /** True: a monitoring system may call the operation with its certificate. */
  readonly isForMonitors?: boolean | undefined
}

interface SessionGuardDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly keys: TokenKeys
  readonly reads: LatestReads
  readonly authorities: NetworkAuthorities
}

/** A session's token: an OIDC access token, or a token that is derived from the session id. */
type SessionToken = AcceptedSessionToken | OidcToken

/**
 * Maximum requests that wait for an unknown key version. Further ones are refused, because any
 * client can send a token with an invented version.
 */
const UNKNOWN_VERSIONS_WAITING_MAX = 64

/** Authenticates requests and checks their permission. */
export class RequestAuthenticator {
  readonly #parts: SessionGuardDeps
  readonly #sessions: SessionTracker
  readonly #tokens: SessionTokenSigner
  readonly #factor: ExternalJwtFactor
  readonly #accessTokens: OidcTokens
  /**
   * The session for which each connection presented the required certificate. Each connection has
   * its own chain object.
   */
  readonly #proven = new WeakMap<PresentedCertificates, string>()
  #waiting = 0

  constructor(
    parts: SessionGuardDeps,
    sessions: SessionTracker,
    tokens: SessionTokenSigner,
    factor: ExternalJwtFactor,
    accessTokens: OidcTokens,
  ) {
    this.#parts = parts
    this.#sessions = sessions
    this.#tokens = tokens
    this.#factor = factor
    this.#accessTokens = accessTokens
  }

  /** Whether the connection's certificate is for monitoring; reads no record of the state. */
  isMonitor(shown: CallerCredentials): boolean {
    return isMonitoringClient(this.#parts, shown)
  }

  /**
   * Authenticates a request that does not come from the host user (`admitHostUser`). The result is
   * a promise only if the authenticator must query the cluster, write to it or verify a signature.
   * Examples are an unknown session or a newer key version, which another controller may have just
   * created, an access token that is not cached, and an external JWT that the session requires.
   * @throws {Problem} CLUSTER_NO_LEADER when the result depends on the cluster and no leader
   * responds; SERVER_TOO_MANY_REQUESTS.
   */
  admit(shown: CallerCredentials, wanted: Permitted): RequestAdmission | Promise<RequestAdmission> {
    const { sessionToken: token } = shown
    let good: SessionToken
    if (token === undefined) {
      const access = this.#accessTokenIn(shown)
      if (access === null) {
        return wanted.isForMonitors === true && this.isMonitor(shown)
          ? { isAdmitted: true, principal: { kind: 'monitor' } }
          : refused(shown.bearers().some(isNoToken) ? 'bearer-invalid' : 'missing')
      }
      if (access instanceof Promise) {
        return access.then((judged) =>
          typeof judged === 'string'
            ? refused(`bearer-${judged}`)
            : this.#confirm(shown, judged, wanted),
        )
      }
      good = access
    } else {
      const finding = this.#tokens.judge(token, this.#parts.clock.nowMs())
      if (finding === 'invalid') return refused('invalid')
      if (typeof finding === 'string') return this.#learnKey(shown, token, wanted)
      good = finding
    }
    const found = this.#sessions.find(good.sessionId)
    if (found === 'unknown' || found === 'expired') return this.#confirm(shown, good, wanted)
    if (lacksFactor(found, wanted.permission)) return this.#confirm(shown, good, wanted)
    if ('text' in good && typeof found !== 'string' && isNotBoundToApi(found.session)) {
      return this.#confirm(shown, good, wanted)
    }
    const admission = this.#accept(shown, found, good, wanted)
    // A refusal because of the API or a missing certificate may be wrong: the local state may lack
    // a session certificate that another controller has just issued.
    const isOther = admission === notShown.session || admission === notShown.bearer
    return isOther && shown.peerChain() !== null ? this.#confirm(shown, good, wanted) : admission
  }

  /**
   * The first of the bearer tokens that is an access token of the controllers; any other bearer
   * tokens are second factors. Returns a promise if the token's signature must be verified, and
   * null if there is no access token.
   */
  #accessTokenIn(
    shown: CallerCredentials,
  ): OidcToken | null | Promise<OidcToken | 'invalid' | 'expired'> {
    for (const text of shown.bearers()) {
      const known = this.#accessTokens.recall(text)
      if (known !== null) return known
      if (looksLikeAccessToken(text)) {
        return this.#accessTokens.judge(text, ['access'], shown.source)
      }
    }
    return null
  }

  /** Binds the session to the API of its first use, and admits the request. */
  async #settle(
    shown: CallerCredentials,
    token: SessionToken,
    wanted: Permitted,
  ): Promise<RequestAdmission> {
    const api = wanted.api === 'client' ? 'client' : 'management'
    await this.#sessions.settle(token.sessionId, api)
    return await this.#accept(shown, this.#sessions.find(token.sessionId), token, wanted)
  }

  /**
   * Admits a request a second time, after it waited until this controller applied a later log
   * entry: if its session has ended or its key has become invalid meanwhile, the caller must not
   * read the later state.
   * @param principal the principal from the earlier admission.
   * @param permission the permission of the operation; for a public operation, only the session is
   * checked again.
   */
  admitAgain(
    shown: CallerCredentials,
    principal: SessionPrincipal,
    wanted: CalledOperation,
    permission: Permission,
  ): RequestAdmission {
    const { sessionToken = '' } = shown
    const { accessToken } = principal
    const finding =
      accessToken === undefined
        ? this.#tokens.judge(sessionToken, this.#parts.clock.nowMs())
        : this.#accessTokens.isInForce(accessToken)
          ? accessToken
          : 'invalid'
    if (typeof finding === 'string') {
      return refused(accessToken === undefined ? 'invalid' : 'bearer-invalid')
    }
    const found = this.#sessions.find(finding.sessionId)
    const before = { ...wanted, permission: principal.permission }
    return this.#seat(shown, found, finding, before, principal.token ?? null, permission)
  }

  /**
   * Reason why a long-lived request must end now; null if it may continue. The call does not count
   * as a use of the session.
   */
  endReason(
    caller: Caller,
    wanted: Pick<Permitted, 'api' | 'method' | 'permission'>,
  ): string | null {
    // The host user has no session that could end.
    if (caller.kind === 'hostUser') return null
    try {
      if (!this.#isStillAccepted(caller)) return 'the session token is no longer accepted'
      const found = this.#sessions.find(caller.session.id)
      if (typeof found === 'string') return 'the session has ended'
      const now = this.#factor.completed(found, caller.token ?? null)
      return canCallOperation(now, wanted.permission, wanted)
        ? null
        : 'the identity of the session is no longer permitted to see these events'
    } catch (error) {
      if (error instanceof Problem)
        return 'this controller cannot check whether the session is still valid'
      throw error
    }
  }

  #isStillAccepted(caller: SessionPrincipal): boolean {
    const nowMs = this.#parts.clock.nowMs()
    const { accessToken } = caller
    if (accessToken !== undefined) return this.#accessTokens.isInForce(accessToken)
    const token = this.#tokens.tokenOf(caller.session.id, caller.keyVersion)
    const finding = this.#tokens.judge(token, nowMs)
    if (typeof finding === 'string') return false
    return !finding.isOfOldKey || isSameAddress(caller.address, caller.session.ipAddress)
  }

  async #confirm(
    shown: CallerCredentials,
    token: SessionToken,
    wanted: Permitted,
  ): Promise<RequestAdmission> {
    await this.#parts.reads.reachLatest()
    const found = this.#sessions.find(token.sessionId)
    if ('text' in token && typeof found !== 'string' && isNotBoundToApi(found.session)) {
      return await this.#settle(shown, token, wanted)
    }
    return await this.#accept(shown, found, token, wanted)
  }

  /**
   * Loads the newest keys and verifies the token with them. If no key fits, the token is invalid.
   */
  async #learnKey(
    shown: CallerCredentials,
    token: string,
    wanted: Permitted,
  ): Promise<RequestAdmission> {
    if (this.#waiting >= UNKNOWN_VERSIONS_WAITING_MAX) {
      throw new Problem('SERVER_TOO_MANY_REQUESTS', { retryAfterSeconds: 1 })
    }
    const { reads, keys, clock } = this.#parts
    this.#waiting += 1
    try {
      await reads.reachLatest()
      await keys.refresh()
    } finally {
      this.#waiting -= 1
    }
    const finding = this.#tokens.judge(token, clock.nowMs())
    if (finding === 'no-key') this.#tokens.requireKey()
    if (typeof finding === 'string') return refused('invalid')
    return await this.#accept(shown, this.#sessions.find(finding.sessionId), finding, wanted)
  }

  #accept(
    shown: CallerCredentials,
    found: SessionLookup,
    token: SessionToken,
    wanted: Permitted,
  ): RequestAdmission | Promise<RequestAdmission> {
    const isFull = typeof found === 'string' || found.pendingFactors.length === 0
    const factor = isFull ? null : this.#factor.tokenFor(shown, found)
    if (!(factor instanceof Promise)) return this.#seat(shown, found, token, wanted, factor)
    return factor.then((verified) => {
      // Looks the session up again, because it may have ended during the verification of the token.
      const again = this.#sessions.find(token.sessionId)
      return this.#seat(shown, again, token, wanted, verified)
    })
  }

  #seat(
    shown: CallerCredentials,
    found: SessionLookup,
    token: SessionToken,
    wanted: Permitted,
    factor: VerifiedToken | null,
    asked: Permission = wanted.permission,
  ): RequestAdmission {
    const isBearer = 'text' in token
    const invalid = isBearer ? 'bearer-invalid' : 'invalid'
    if (found === 'unknown' || found === 'refused') return refused(invalid)
    if (found === 'expired') return refused(isBearer ? 'bearer-expired' : 'expired')
    const { address } = shown
    // @guard oidc/code-flow--derived
    const isOfSession =
      'text' in token ? isTokenForSession(token, found.session) : !found.session.clientId
    if (!isOfSession) return refused(invalid)
    if (
      'isOfOldKey' in token &&
      token.isOfOldKey &&
      !isSameAddress(address, found.session.ipAddress)
    ) {
      return refused(invalid)
    }
    if (!this.#isHonoredAt(shown, wanted.api, found.session)) {
      return isBearer ? notShown.bearer : notShown.session
    }
    const principal: SessionPrincipal = {
      ...(factor === null ? found : this.#factor.completed(found, factor)),
      kind: 'session',
      address,
      permission: permissionOnApi(wanted.api, wanted.permission),
      ...('text' in token ? { accessToken: token } : { keyVersion: token.version }),
    }
    const isPermitted = canCallOperation(principal, asked, wanted)
    this.#sessions.use(found.session.id)
    if (isPermitted) return { isAdmitted: true, principal }
    const challenge = missingFactorChallenge(this.#parts, shown, principal)
    return { isAdmitted: false, principal, challenge }
  }

  /**
   * Whether the API accepts the session. Routers see the tokens of their clients and must not be
   * able to use them. So a session of the client API is valid only on that API; if it is bound to a
   * key, only together with a certificate of the session or of its identity.
   */
  #isHonoredAt(shown: CallerCredentials, api: ApiName, session: ApiSession): boolean {
    const { state } = this.#parts
    if (api !== 'client' && !isAcceptedByManagement(state, session)) return false
    if (api !== 'client' && !session.clientId) return true
    const chain = shown.peerChain()
    // After the client's certificate is extended, connections with the earlier certificate stay
    // usable.
    if (chain !== null && this.#proven.get(chain) === session.id) return true
    const isShown = isUsableWithCertificate(state, session, chain?.[0].sha1 ?? null)
    if (isShown && chain !== null) this.#proven.set(chain, session.id)
    return isShown
  }
}

/** Whether a text is not a JWT at all. */
function isNoToken(text: string): boolean {
  return unverifiedClaims(text) === null
}

/**
 * Whether the session lacks a second factor, other than an external JWT, that the operation
 * requires. Only the local state is read: the latest state may contain the factor, because another
 * controller may have just accepted a code.
 */
function lacksFactor(found: SessionLookup, permission: SessionPermission): boolean {
  if (typeof found === 'string' || permission === 'partial') return false
  return found.pendingFactors.length > 0 && lacksSessionFactor(found.pendingFactors)
}

/**
 * Refusals of a session on an API that does not accept it, or without the certificate to which it
 * is bound.
 */
const notShown = { session: refused('invalid'), bearer: refused('bearer-invalid') }

function refused(challenge: ChallengeReason): RequestAdmission {
  return { isAdmitted: false, principal: null, challenge }
}
