import type { ApiSession } from '../../entities/api-session.ts'
import type { Authenticator } from '../../entities/authenticator.ts'
import type { Identity } from '../../entities/identity.ts'
import type { SessionCertificate } from '../../entities/session-certificate.ts'
import type { Session } from '../../entities/session.ts'
import { pendingFactors } from '../../fsm/authentication.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import type { ChangeFeed, RecordChange } from '../../ports/change-feed.ts'
import type {
  ClientClaim,
  ClientFollower,
  ClientSession,
  JudgedClaim,
  RouterClients,
} from '../../ports/router-clients.ts'
import type { ApiParts } from '../parts.ts'
import type { ApiServices } from '../records/services.ts'
import { serviceSessionIn } from '../session-token.ts'
import { judgedNowMs } from '../auth/judged-now.ts'

/** Kinds whose records say which sessions there are and by which certificates. */
const followed = [
  ...['apiSession', 'sessionCertificate', 'authenticator'],
  // What decides whether they are full ones.
  ...['identity', 'mfa', 'authPolicy'],
]

/** The records that sessions are read from. */
export interface ClientRecords extends ChangeFeed {
  /** Of all records of a kind. */
  ids(kind: string): Iterable<string>
}

/**
 * Of an identity, its MFA and its credentials: what, when it changes, changes what routers are told
 * of its sessions.
 */
const decisive = ['fingerprint', 'isVerified', 'authPolicyId', 'disabledAt', 'disabledUntil']

/**
 * What routers are told of their clients, and what is judged of a client that dials or hosts
 * through one.
 */
export class ApiRouterClients implements RouterClients {
  readonly #parts: ApiParts
  readonly #services: ApiServices
  readonly #records: ClientRecords

  constructor(parts: ApiParts, services: ApiServices, records: ClientRecords) {
    this.#parts = parts
    this.#services = services
    this.#records = records
  }

  *sessions(): Iterable<ClientSession> {
    for (const id of this.#records.ids('apiSession')) {
      const session = this.#session(id)
      if (session !== null) yield session
    }
  }

  tokensOf(sessionId: string): readonly string[] {
    const nowMs = this.#parts.clock.nowMs()
    return this.#parts.keys
      .clusterKeys()
      .filter(({ overlapEndsAtMs }) => overlapEndsAtMs === null || overlapEndsAtMs > nowMs)
      .map(({ version }) => this.#services.tokens.tokenOf(sessionId, version))
  }

  follow(follower: ClientFollower): () => void {
    return this.#records.follow(followed, {
      onEntry: (_index, changes) => {
        if (changes.some(({ kind }) => kind === 'authPolicy')) {
          follower.onReplaced()
          return
        }
        const changed: ClientSession[] = []
        const gone: string[] = []
        for (const id of this.#sessionsIn(changes)) {
          const session = this.#session(id)
          if (session === null) gone.push(id)
          else changed.push(session)
        }
        if (changed.length + gone.length > 0) follower.onChanged(changed, gone)
      },
      onReplaced: () => follower.onReplaced(),
    })
  }

  used(token: string): void {
    const { tokens, sessions } = this.#services
    const found = tokens.judge(token, this.#parts.clock.nowMs())
    if (typeof found !== 'string') sessions.use(found.sessionId)
  }

  async goneSessions(tokens: readonly string[]): Promise<readonly string[]> {
    const gone: string[] = []
    for (const token of tokens) {
      const claimed = await serviceSessionIn(this.#parts, token)
      const isThere =
        claimed !== null && this.#parts.state.get('session', claimed.sessionId) !== undefined
      if (!isThere) gone.push(token)
    }
    return gone
  }

  async judge(claim: ClientClaim): Promise<JudgedClaim> {
    const { state, posture } = this.#parts
    const apiSession = this.#apiSessionOf(claim)
    if (apiSession === null) return { ok: false, fault: 'apiSession' }
    const claimed = await serviceSessionIn(this.#parts, claim.sessionToken)
    const session = state.get<Session>('session', claimed?.sessionId ?? '')
    if (session === undefined || claimed === null) return { ok: false, fault: 'session' }
    const isOwn = session.apiSessionId === apiSession.id && claimed.apiSessionId === apiSession.id
    if (!isOwn || session.serviceId !== claimed.serviceId) return { ok: false, fault: 'session' }
    if (session.type !== claim.type) return { ok: false, fault: 'sessionType' }
    const { identityId, serviceId, type } = session
    const identity = state.get<Identity>('identity', identityId)
    const between = state.accessBetween(identityId, serviceId)
    if (identity === undefined || between === null) return { ok: false, fault: 'service' }
    if (!between.policies.some((policy) => policy.type === type)) {
      return { ok: false, fault: 'access' }
    }
    if (!between.commonRouters.some(({ id }) => id === claim.routerId)) {
      return { ok: false, fault: 'router' }
    }
    const failures = posture.failures(session, posture.ofSession(apiSession))
    if (failures.length > 0) return { ok: false, fault: 'posture' }
    const named = { identityId, identityName: identity.name, serviceId }
    return { ok: true, client: { ...named, sessionId: session.id, apiSessionId: apiSession.id } }
  }

  /**
   * The session of a token, as the API would honour it, from a client that showed one of its
   * certificates.
   */
  #apiSessionOf({ apiSessionToken, fingerprints }: ClientClaim): ApiSession | null {
    const { tokens, sessions } = this.#services
    const found = tokens.judge(apiSessionToken, this.#parts.clock.nowMs())
    if (typeof found === 'string') return null
    const caller = sessions.find(found.sessionId)
    if (typeof caller === 'string') return null
    const session = this.#session(found.sessionId)
    if (session === null || !fingerprints.some((print) => session.fingerprints.includes(print))) {
      return null
    }
    sessions.use(found.sessionId)
    return caller.session as ApiSession
  }

  /** null for one that is gone or lacks a factor: its client has no business at a router. */
  #session(id: string): ClientSession | null {
    const { state } = this.#parts
    const session = state.get<ApiSession>('apiSession', id)
    const identity = state.get<Identity>('identity', session?.identityId ?? '')
    if (session === undefined || identity === undefined) return null
    if (isDisabled(identity, judgedNowMs(this.#parts))) return null
    // The token of a signer came with the request for each service session: a router can not ask
    // for it again.
    const lacks = pendingFactors(state, identity, session)
    if (lacks.some(({ kind }) => kind === 'totp')) return null
    const fingerprints = this.#fingerprintsOf(session)
    if (fingerprints.length === 0) return null
    return { id, identityId: identity.id, tokens: this.tokensOf(id), fingerprints }
  }

  /**
   * Of the certificate that it was opened by, those of its identity, and those that were made for
   * it.
   */
  #fingerprintsOf({ id, identityId, certFingerprint }: ApiSession): readonly string[] {
    const { state } = this.#parts
    const own = state
      .findAll<SessionCertificate>('sessionCertificate', 'apiSessionId', id)
      .map(({ fingerprint }) => fingerprint)
    const enrolled = state
      .findAll<Authenticator>('authenticator', 'identityId', identityId)
      .map(({ fingerprint }) => fingerprint)
    const all = [certFingerprint, ...own, ...enrolled]
    return [
      ...new Set(all.filter((print) => typeof print === 'string' && print !== '')),
    ] as string[]
  }

  #sessionsIn(changes: readonly RecordChange[]): ReadonlySet<string> {
    const ids = new Set<string>()
    for (const { kind, id, before, after } of changes) {
      if (kind === 'apiSession') {
        // What its uses write is nothing to routers.
        if (before === undefined || after === undefined || isOther(before, after)) ids.add(id)
        continue
      }
      for (const record of [before, after]) {
        const sessionId = record?.['apiSessionId']
        if (typeof sessionId === 'string') ids.add(sessionId)
        const identityId = kind === 'identity' ? id : record?.['identityId']
        const isSame = decisive.every((name) => before?.[name] === after?.[name])
        if (kind === 'sessionCertificate' || typeof identityId !== 'string' || isSame) continue
        for (const session of this.#parts.state.findAll('apiSession', 'identityId', identityId)) {
          ids.add(session.id)
        }
      }
    }
    return ids
  }
}

function isOther(before: RecordChange['after'], after: RecordChange['after']): boolean {
  const told = (record: RecordChange['after']): string => {
    const used = { lastActivityAt: null, revision: null, updatedAt: null }
    return JSON.stringify({ ...record, ...used })
  }
  return told(before) !== told(after)
}
