import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Session } from '../../entities/kinds/session.ts'
import {
  openServiceSession,
  type ServiceSessionDeps,
} from '../../auth/sessions/open-service-session.ts'
import {
  type VerifiedServiceSessionToken,
  verifyServiceSessionToken,
} from '../../auth/sessions/service-session-token.ts'
import type { JwtSigner } from '../../auth/sessions/jwt-signer.ts'
import type { SessionTracker } from '../../auth/sessions/session-tracker.ts'
import { pendingFactors } from '../../fsm/apply/authentication.ts'
import { isNotBoundToApi } from '../../fsm/apply/session-usability.ts'
import { WindowedQuota } from '../../lib/bounds/quota.ts'
import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import type { ClientAccessFault, ClientAccessRequest } from '../../ports/router-clients.ts'
import type { DialBind } from '../../ports/state-view.ts'
import type { WriteOrigin } from '../../ports/writer.ts'
import { backgroundWriteRequest } from '../http/proposal-writer.ts'

export interface RequestedServiceSessionsDeps extends Omit<ServiceSessionDeps, 'limits'> {
  readonly jwt: JwtSigner
  readonly sessions: Pick<SessionTracker, 'settle'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly limits: ServiceSessionDeps['limits'] & ReopenLimits
}

interface ReopenLimits {
  readonly sessionReopensMax: number
  readonly sessionReopensInAllMax: number
}

/**
 * Identity, service and session type (dial or bind) that a client claims at a router. The claim
 * grants nothing: the policies in the current state decide whether the client may use the service.
 */
export interface RequestedServiceUse {
  readonly identityId: string
  readonly serviceId: string
  readonly type: DialBind
  readonly session:
    | { readonly state: 'open'; readonly id: string }
    /** The token is authentic, but the service session that it names has ended. */
    | { readonly state: 'ended'; readonly id: string }
    | { readonly state: 'none' }
}

/**
 * The service session that was opened for a client at a router, or the reason why none was opened.
 */
export type SessionOpenResult =
  | { readonly ok: true; readonly id: string }
  | { readonly ok: false; readonly fault: ClientAccessFault }

const WINDOW_MS = 60_000

/**
 * Finds the service sessions that clients claim at routers, and opens a session if none exists for
 * a valid claim.
 */
export class RequestedServiceSessions {
  readonly #deps: RequestedServiceSessionsDeps
  /**
   * Limits reopened service sessions per API session, because each reopening costs a log entry.
   */
  readonly #reopens: WindowedQuota
  /** Service sessions that are being opened, by API session, service and session type. */
  readonly #opening = new Map<string, Promise<SessionOpenResult>>()

  constructor(deps: RequestedServiceSessionsDeps) {
    const { sessionReopensMax: ofOneMax, sessionReopensInAllMax: allMax } = deps.limits
    this.#deps = deps
    this.#reopens = new WindowedQuota({ ofOneMax, allMax, windowMs: WINDOW_MS }, deps.clock)
  }

  /**
   * @returns the claimed use, or a fault. The fault 'session' means that the client must request a
   * new service session from a controller.
   */
  async useOf(
    claim: ClientAccessRequest,
    apiSession: ApiSession,
  ): Promise<RequestedServiceUse | ClientAccessFault> {
    const { serviceId } = claim
    return serviceId === undefined
      ? await this.#shownUse(apiSession, claim.sessionToken)
      : this.#namedUse(apiSession, serviceId, claim)
  }

  /**
   * Returns the open service session; opens one if necessary. A service session is needed because
   * its end also ends circuits and hosted services when the client loses its right. An ended
   * session is reopened under its previous ID, which its client and routers know.
   */
  async open(apiSession: ApiSession, use: RequestedServiceUse): Promise<SessionOpenResult> {
    const { session } = use
    if (session.state === 'open') return { ok: true, id: session.id }
    const key = `${apiSession.id} ${use.serviceId} ${use.type}`
    const opening = this.#opening.get(key)
    if (opening !== undefined) return await opening
    // @guard ended-service-sessions--many
    if (session.state === 'ended' && !this.#reopens.take(apiSession.id)) {
      return { ok: false, fault: 'session' }
    }
    const id = session.state === 'ended' ? session.id : newShortId()
    const opened = this.#open(apiSession, use, id)
    this.#opening.set(key, opened)
    try {
      return await opened
    } finally {
      this.#opening.delete(key)
    }
  }

  async #shownUse(
    apiSession: ApiSession,
    token: string,
  ): Promise<RequestedServiceUse | ClientAccessFault> {
    const { state } = this.#deps
    const claimed = await verifyServiceSessionToken(this.#deps, token)
    // @guard claims-at-a-router--session
    if (claimed?.apiSessionId !== apiSession.id) return 'session'
    const session = state.get('session', claimed.sessionId)
    if (session === undefined) return this.#endedUse(apiSession, claimed)
    const { apiSessionId, serviceId } = session
    const isSame = apiSessionId === claimed.apiSessionId && serviceId === claimed.serviceId
    return isSame ? openUse(session) : 'session'
  }

  /**
   * Identity, service and session type in the token of an ended session. The token proves only that
   * its client requested this use in this API session; as in OpenZiti, the current policies decide.
   */
  #endedUse(
    apiSession: ApiSession,
    claimed: VerifiedServiceSessionToken,
  ): RequestedServiceUse | ClientAccessFault {
    const { state } = this.#deps
    const { serviceId, type, sessionId } = claimed
    const identity = state.get('identity', apiSession.identityId)
    if (identity === undefined) return 'session'
    // The client sent the external JWT only with the request for its service session, so a router
    // cannot present it.
    // @guard ended-service-sessions--factor
    if (pendingFactors(state, identity, apiSession).length > 0) return 'session'
    // If the service no longer exists, the client must look for it again: a service that was
    // deleted and created again has another ID.
    if (state.get('service', serviceId) === undefined) return 'session'
    const other = this.#openSession(apiSession.id, serviceId, type)
    if (other !== undefined) return openUse(other)
    const session = { state: 'ended', id: sessionId } as const
    return { identityId: identity.id, serviceId, type, session }
  }

  /**
   * The identity, service and session type for an OIDC client, whose claim names the service and
   * contains no token of a service session.
   */
  #namedUse(
    apiSession: ApiSession,
    serviceId: string,
    { type, identityId }: ClientAccessRequest,
  ): RequestedServiceUse | ClientAccessFault {
    // @guard claims-by-access-token--identity, claims-by-access-token--service
    if (!apiSession.clientId || apiSession.identityId !== identityId) return 'apiSession'
    const known = this.#openSession(apiSession.id, serviceId, type)
    if (known !== undefined) return openUse(known)
    return { identityId, serviceId, type, session: { state: 'none' } }
  }

  #openSession(apiSessionId: string, serviceId: string, type: DialBind): Session | undefined {
    return this.#deps.state
      .findAll('session', 'apiSessionId', apiSessionId)
      .find((one) => one.serviceId === serviceId && one.type === type)
  }

  async #open(
    apiSession: ApiSession,
    { identityId, serviceId, type }: RequestedServiceUse,
    id: string,
  ): Promise<SessionOpenResult> {
    // Binds the session to the client API. A router has seen the token, so this session must never
    // get access to the management API, even if its identity gains rights later.
    if (isNotBoundToApi(apiSession)) await this.#deps.sessions.settle(apiSession.id, 'client')
    const wanted = { id, identityId, serviceId, type, tags: {} }
    try {
      const opened = await openServiceSession(this.#deps, originFor(apiSession), apiSession, wanted)
      // After the log entry that opened the session, the client may have lost the right again,
      // which ended the session.
      // @guard ended-service-sessions--opened
      if (this.#deps.state.get('session', opened) === undefined) {
        return { ok: false, fault: 'session' }
      }
      return { ok: true, id: opened }
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      const fault = openFaults.get(error.code)
      if (fault === undefined) throw error
      return { ok: false, fault }
    }
  }
}

function openUse({ id, identityId, serviceId, type }: Session): RequestedServiceUse {
  return { identityId, serviceId, type, session: { state: 'open', id } }
}

/** Fault that a router receives when a service session cannot be opened, by error code. */
const openFaults: ReadonlyMap<string, ClientAccessFault> = new Map([
  ['NOT_FOUND', 'service'],
  ['COULD_NOT_VALIDATE', 'access'],
  ['INVALID_POSTURE', 'posture'],
  ['NO_EDGE_ROUTERS_AVAILABLE', 'router'],
  ['UNAUTHORIZED', 'apiSession'],
])

/** The origin of a write. The actor is the client, no matter which router sends its request. */
function originFor({ id, identityId, ipAddress }: ApiSession): WriteOrigin {
  const shown = { signerId: '', signerRevision: '0' }
  const value = { identityId, sessionId: id, address: ipAddress, ...shown }
  return {
    ...backgroundWriteRequest(),
    actor: { case: 'session', value: { ...value, permission: 'session' } },
  }
}
