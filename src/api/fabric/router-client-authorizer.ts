import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { KindName } from '../../entities/kind-records.ts'
import { lacksSessionFactor, pendingFactors } from '../../fsm/apply/authentication.ts'
import { matchesRoles } from '../../fsm/records/roles.ts'
import { sessionCertificateFingerprints, canUseRouters } from '../../fsm/apply/session-usability.ts'
import { isSameJson } from '../../lib/text/canonical-json.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import { changesByKind, type ChangeFeed, type RecordChange } from '../../ports/change-feed.ts'
import type {
  ClientAccessRequest,
  ClientSessionListener,
  ClientSession,
  EndedSession,
  EndedServiceSession,
  ClientAccessDecision,
  RouterClients,
  ReportedClient,
  SessionFilter,
} from '../../ports/router-clients.ts'
import { unverifiedServiceSessionId } from '../../auth/sessions/service-session-token.ts'
import { type Clock, proposalNowMs } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import type { CommandWriter } from '../../ports/writer.ts'
import type { StateView } from '../../ports/state-view.ts'
import type {
  GrantedRight,
  PostureFailure,
  PostureReport,
  PostureService,
} from '../../ports/posture.ts'
import type { TokenKeys } from '../../ports/token-keys.ts'
import { isTokenForSession, type OidcTokens } from '../../auth/sessions/oidc-tokens.ts'
import type { SessionTracker } from '../../auth/sessions/session-tracker.ts'
import type { SessionTokenSigner } from '../../auth/sessions/session-token-signer.ts'
import type { JwtSigner } from '../../auth/sessions/jwt-signer.ts'
import { type OidcToken, looksLikeAccessToken } from '../../pki/oidc-token.ts'
import {
  RequestedServiceSessions,
  type RequestedServiceSessionsDeps,
} from './requested-service-sessions.ts'

interface ApiRouterClientsDeps {
  readonly state: StateView
  readonly posture: PostureService
  readonly keys: TokenKeys
  readonly jwt: JwtSigner
  readonly clock: Clock
  readonly sessions: SessionTracker
  readonly tokens: SessionTokenSigner
  readonly oidcTokens: OidcTokens
  readonly writer: CommandWriter
  readonly limits: RequestedServiceSessionsDeps['limits']
}

/**
 * Kinds whose records determine which sessions exist, and which certificates belong to the
 * sessions.
 */
const followed: readonly KindName[] = [
  'apiSession',
  'session',
  'sessionCertificate',
  'authenticator',
  // Records that determine whether a session is fully authenticated.
  'identity',
  'mfa',
  'authPolicy',
  // Records that determine which routers may receive a session.
  'edgeRouterPolicy',
  'router',
]

const ofSessions: ReadonlySet<string> = new Set([
  'apiSession',
  'sessionCertificate',
  'authenticator',
  'identity',
  'mfa',
])

/** The records from which client sessions are derived. */
export interface ClientSessionRecords extends ChangeFeed {
  /** Ids of all records of a kind. */
  ids(kind: KindName): Iterable<string>
}

/**
 * Fields of an identity, its MFA and its credentials. These fields determine which sessions of the
 * identity are sent to routers, and which data is sent with them.
 */
const decisive = [
  'fingerprint',
  'isVerified',
  'authPolicyId',
  'disabledAt',
  'disabledUntil',
  'isAdmin',
  'permissions',
  'roleAttributes',
]

/**
 * Provides the sessions of clients that controllers send to routers, and decides about clients that
 * dial or host through a router.
 */
export class RouterClientAuthorizer implements RouterClients {
  readonly #deps: ApiRouterClientsDeps
  readonly #records: ClientSessionRecords
  readonly #claimed: RequestedServiceSessions

  constructor(deps: ApiRouterClientsDeps, records: ClientSessionRecords) {
    this.#deps = deps
    this.#records = records
    this.#claimed = new RequestedServiceSessions(deps)
  }

  sessionIds(): Iterable<string> {
    return this.#records.ids('apiSession')
  }

  routersOf({ identityId }: ClientSession): { has(routerId: string): boolean } {
    // @guard sessions-at-a-stolen-router--policy
    return this.#deps.state.routersOfIdentity(identityId)
  }

  sessionFilterOf(routerId: string): SessionFilter {
    const { key, identities } = this.#deps.state.identitiesOfRouter(routerId)
    // @guard sessions-at-a-stolen-router--whole
    return { key, has: ({ identityId }) => identities.has(identityId) }
  }

  session(id: string): ClientSession | null {
    const session = this.#deps.state.get('apiSession', id)
    // Sends no OIDC session, because OIDC clients present tokens that routers verify themselves.
    // @guard claims-by-access-token--shown
    return session === undefined || session.clientId ? null : this.#clientOf(session)
  }

  /**
   * The fields of the session that routers receive. null for a session that must not be sent to
   * routers: it lacks a second factor, has no certificate or may not be used at routers
   * (`canUseRouters`), or its identity is disabled or deleted.
   */
  #clientOf(session: ApiSession): ClientSession | null {
    const { state } = this.#deps
    const identity = state.get('identity', session.identityId)
    if (identity === undefined || !canUseRouters(session, identity)) return null
    if (isDisabled(identity, proposalNowMs(this.#deps))) return null
    // Ignores a missing external JWT: the client sends it only to controllers, with the request for
    // each service session, and a router cannot obtain it.
    const lacks = pendingFactors(state, identity, session)
    // @guard claims-at-a-router--factor
    if (lacksSessionFactor(lacks)) return null
    const fingerprints = sessionCertificateFingerprints(state, session)
    if (fingerprints.length === 0) return null
    return { id: session.id, identityId: identity.id, fingerprints }
  }

  tokensOf(sessionId: string): readonly string[] {
    const nowMs = this.#deps.clock.nowMs()
    return this.#deps.keys
      .clusterKeys()
      .filter(({ overlapEndsAtMs }) => overlapEndsAtMs === null || overlapEndsAtMs > nowMs)
      .map(({ version }) => this.#deps.tokens.tokenOf(sessionId, version))
  }

  follow(follower: ClientSessionListener): () => void {
    return this.#records.follow(followed, {
      onEntry: (_index, changes) => {
        const byKind = changesByKind(changes)
        const ended = (byKind.get('session') ?? []).flatMap(endedSession)
        if (ended.length > 0) follower.onEnded(ended)
        const ids = [...this.#sessionsIn(changes)]
        if (ids.length > 0) follower.onSessions(ids)
        const routerIds = new Set([
          ...(byKind.get('router') ?? []).flatMap(movedRouter),
          ...this.#routersMeant(byKind.get('edgeRouterPolicy') ?? []),
        ])
        // @guard sessions-at-a-stolen-router--moved
        if (byKind.has('authPolicy')) follower.onRouters(null)
        else if (routerIds.size > 0) follower.onRouters([...routerIds])
      },
      onReplaced: () => follower.onReplaced(),
    })
  }

  used(routerId: string, token: string): void {
    const session = this.session(this.#sessionIdOf(token) ?? '')
    // @guard sessions-at-a-stolen-router--heartbeat
    if (session === null || !this.routersOf(session).has(routerId)) return
    this.#deps.sessions.use(session.id)
  }

  /**
   * The id of the session to which the token belongs; null if the token is not a valid token that
   * is derived from a session id.
   */
  #sessionIdOf(token: string): string | null {
    const found = this.#deps.tokens.judge(token, this.#deps.clock.nowMs())
    return typeof found === 'string' ? null : found.sessionId
  }

  goneSession(token: string): EndedServiceSession | null {
    const id = unverifiedServiceSessionId(token) ?? token
    return this.#deps.state.get('session', id) === undefined ? { token, id } : null
  }

  async judge(claim: ClientAccessRequest): Promise<ClientAccessDecision> {
    const first = await this.#judgeNow(claim, false)
    if (first !== 'unsettled') return first
    // Fetches the latest reports, because the client may have just reported its posture to another
    // controller.
    await this.#deps.posture.reachLatest()
    const last = await this.#judgeNow(claim, true)
    return last === 'unsettled' ? { ok: false, fault: 'posture' } : last
  }

  /**
   * @param isLatest true if this controller has the latest posture reports.
   * @returns 'unsettled' if the result depends on reports that this controller may lack.
   */
  async #judgeNow(
    claim: ClientAccessRequest,
    isLatest: boolean,
  ): Promise<ClientAccessDecision | 'unsettled'> {
    const { state } = this.#deps
    const apiSession = await this.#apiSessionOf(claim)
    if (apiSession === null) return { ok: false, fault: 'apiSession' }
    const use = await this.#claimed.useOf(claim, apiSession)
    if (typeof use === 'string') return { ok: false, fault: use }
    // @guard claims-at-a-router--type
    if (use.type !== claim.type) return { ok: false, fault: 'sessionType' }
    const { identityId, serviceId, type } = use
    const identity = state.get('identity', identityId)
    const between = state.accessBetween(identityId, serviceId)
    if (identity === undefined || between === null) return { ok: false, fault: 'service' }
    // @guard ended-service-sessions--access
    if (!between.policies.some((policy) => policy.type === type)) {
      return { ok: false, fault: 'access' }
    }
    // @guard claims-at-a-router--router
    if (!between.commonRouters.some(({ id }) => id === claim.routerId)) {
      return { ok: false, fault: 'router' }
    }
    const { failures, isJudged } = this.#postureVerdict(claim, apiSession, use)
    const { posture } = this.#deps
    // The result of the router must replace the reports that the device made before it.
    const isNoted = !isJudged || posture.isNotedAtJudge(apiSession, claim.routerId)
    // If the session was ended because of failing posture, a controller that lacks the failing
    // report must not open it again.
    // @guard ended-service-sessions--posture
    const isReopened = use.session.state === 'ended' && state.count('postureCheck') > 0
    if (!isLatest && (failures.length > 0 || isReopened || !isNoted)) return 'unsettled'
    if (failures.length > 0) {
      const wanted = { identityId, serviceId, type, apiSessionId: apiSession.id }
      posture.refused(wanted, failures, new Problem('INVALID_POSTURE'))
      return { ok: false, fault: 'posture' }
    }
    if (!isNoted) posture.notedAtJudge(apiSession, claim.routerId)
    const opened = await this.#claimed.open(apiSession, use)
    if (!opened.ok) return opened
    const named = { identityId, identityName: identity.name, serviceId }
    return { ok: true, client: { ...named, sessionId: opened.id, apiSessionId: apiSession.id } }
  }

  /** `isJudged`: only the result of the router makes the checks pass. */
  #postureVerdict(
    claim: ClientAccessRequest,
    apiSession: ApiSession,
    use: GrantedRight,
  ): { readonly failures: readonly PostureFailure[]; readonly isJudged: boolean } {
    const { posture } = this.#deps
    const failures = posture.failures(use, posture.ofSession(apiSession))
    // Uses the router's result only for OIDC sessions, because clients of other sessions report
    // their posture only to controllers.
    // @guard oidc/posture-at-a-router--oidc
    const isTrusted = Boolean(apiSession.clientId) && claim.isJudgedByRouter === true
    if (failures.length === 0 || !isTrusted) return { failures, isJudged: false }
    const remaining = posture.failures(use, posture.ofSessionAtJudge(apiSession))
    return { failures: remaining, isJudged: remaining.length === 0 }
  }

  async report(client: ReportedClient, reports: readonly PostureReport[]): Promise<boolean> {
    const session = await this.#apiSessionOf(client)
    // @guard oidc/posture-at-a-router--own
    if (!session?.clientId) return false
    const { state, posture } = this.#deps
    // @guard oidc/posture-at-a-router--known
    if (!state.routersOfIdentity(session.identityId).has(client.routerId)) return false
    await posture.report(session, reports)
    return true
  }

  /**
   * The session that a token identifies, if the API would accept the token from a client with this
   * certificate.
   */
  async #apiSessionOf(
    claim: ReportedClient & Pick<ClientAccessRequest, 'serviceId'>,
  ): Promise<ApiSession | null> {
    const { sessions } = this.#deps
    const token = await this.#accessTokenOf(claim)
    const id = token?.sessionId ?? this.#sessionIdOf(claim.apiSessionToken)
    const caller = id === null ? 'unknown' : sessions.find(id)
    if (typeof caller === 'string') return null
    const session = caller.session
    // @guard claims-by-access-token--kind
    const isOfSession = token === null ? !session.clientId : isTokenForSession(token, session)
    const client = isOfSession ? this.#clientOf(session) : null
    if (client === null || !isShownBy(claim, client.fingerprints)) return null
    sessions.use(session.id)
    return session
  }

  async #accessTokenOf({ apiSessionToken, routerId }: ReportedClient): Promise<OidcToken | null> {
    const { oidcTokens } = this.#deps
    if (!looksLikeAccessToken(apiSessionToken)) return null
    const known = oidcTokens.recall(apiSessionToken)
    if (known !== null) return known
    const judged = await oidcTokens.judge(apiSessionToken, ['access'], `router ${routerId}`)
    return typeof judged === 'string' ? null : judged
  }

  /** The edge routers that the roles of a changed policy select, before or after the change. */
  *#routersMeant(changes: readonly RecordChange<'edgeRouterPolicy'>[]): Iterable<string> {
    const policies = changes.flatMap(({ before, after }) => [before, after])
    const known = policies.filter((policy) => policy !== undefined)
    if (known.length === 0) return
    for (const id of this.#records.ids('edgeRouter')) {
      const router = this.#deps.state.get('edgeRouter', id)
      if (router === undefined) continue
      const isMeant = known.some(({ edgeRouterRoles, semantic }) =>
        matchesRoles(router, edgeRouterRoles, semantic),
      )
      if (isMeant) yield id
    }
  }

  #sessionsIn(changes: readonly RecordChange[]): ReadonlySet<string> {
    const ids = new Set<string>()
    for (const { kind, id, before, after } of changes) {
      if (!ofSessions.has(kind)) continue
      if (kind === 'apiSession') {
        // Ignores a change that only sets the time of the session's last use.
        if (before === undefined || after === undefined || isOther(before, after)) ids.add(id)
        continue
      }
      for (const record of [before, after]) {
        const sessionId = record?.['apiSessionId']
        if (typeof sessionId === 'string') ids.add(sessionId)
        const identityId = kind === 'identity' ? id : record?.['identityId']
        const isSame = decisive.every((name) =>
          isSameJson(before?.[name] ?? null, after?.[name] ?? null),
        )
        if (kind === 'sessionCertificate' || typeof identityId !== 'string' || isSame) continue
        for (const session of this.#deps.state.findAll('apiSession', 'identityId', identityId)) {
          ids.add(session.id)
        }
      }
    }
    return ids
  }
}

/**
 * Whether the client presented a certificate of its session to the router. A router that names a
 * service has already compared the certificate with the token. Do not rely on the reported
 * fingerprints: a malicious router can copy them from the token.
 */
function isShownBy(
  { fingerprints, serviceId }: Pick<ClientAccessRequest, 'fingerprints' | 'serviceId'>,
  own: readonly string[],
): boolean {
  // @guard claims-at-a-router--certificate
  if (fingerprints.length === 0) return serviceId !== undefined
  // @guard claims-by-access-token--certificate
  return fingerprints.some((one) => own.includes(one))
}

function isOther(before: RecordChange['after'], after: RecordChange['after']): boolean {
  const shownText = (record: RecordChange['after']): string => {
    const used = { lastActivityAt: null, revision: null, updatedAt: null }
    return JSON.stringify({ ...record, ...used })
  }
  return shownText(before) !== shownText(after)
}

function endedSession({ id, before, after }: RecordChange<'session'>): EndedSession[] {
  if (after !== undefined || before === undefined) return []
  return [{ id, apiSessionId: before.apiSessionId }]
}

/**
 * The id of a router that is new or whose role attributes changed, so that other policies may
 * select it. A deleted router is ignored, because its channel closes anyway.
 */
function movedRouter({ id, before, after }: RecordChange<'router'>): string[] {
  if (after === undefined) return []
  return before !== undefined && isSameJson(before.roleAttributes, after.roleAttributes) ? [] : [id]
}
