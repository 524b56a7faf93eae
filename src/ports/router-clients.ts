import type { PostureReport } from './posture.ts'

/** An API session whose client may connect to edge routers. */
export interface ClientSession {
  readonly id: string
  readonly identityId: string
  /** Hex SHA-1 of the certificates that its client may present. */
  readonly fingerprints: readonly string[]
}

/** Request of a client to dial or to host a service, as its router sends it. */
export interface ClientAccessRequest {
  readonly routerId: string
  /** Token of the service session; '' if the client names the service itself. */
  readonly sessionToken: string
  /** The service that an OIDC client names; absent: the client presents a service session. */
  readonly serviceId?: string
  /** The identity of the client according to the router; absent: the router does not send it. */
  readonly identityId?: string
  readonly apiSessionToken: string
  /**
   * Hex SHA-1 of the certificates that the client presented to the router; may be empty if
   * `serviceId` is given.
   */
  readonly fingerprints: readonly string[]
  readonly type: 'Dial' | 'Bind'
  /**
   * True if the router evaluates the posture of OIDC clients itself, and has done so for this
   * client.
   */
  readonly isJudgedByRouter?: boolean
}

/** A client, as a router describes it in its report. */
export type ReportedClient = Pick<
  ClientAccessRequest,
  'routerId' | 'apiSessionToken' | 'fingerprints'
>

/** Sessions, service and identity of a client whose request the controller permits. */
export interface AdmittedClient {
  readonly sessionId: string
  readonly apiSessionId: string
  readonly serviceId: string
  readonly identityId: string
  readonly identityName: string
}

/** The first requirement that a client's request does not meet. */
export type ClientAccessFault =
  | 'apiSession'
  | 'session'
  | 'sessionType'
  | 'service'
  | 'router'
  | 'access'
  | 'posture'

/** Whether a client may dial or host, and the reason if it may not. */
export type ClientAccessDecision =
  | { readonly ok: true; readonly client: AdmittedClient }
  | { readonly ok: false; readonly fault: ClientAccessFault }

/** A service session that has ended, and its API session. */
export interface EndedSession {
  readonly id: string
  readonly apiSessionId: string
}

/** A service session that the state does not contain, with its token and id. */
export interface EndedServiceSession {
  readonly token: string
  readonly id: string
}

/** Receives changes of the sessions that routers may know. */
export interface ClientSessionListener {
  /**
   * Called with the ids of API sessions that were created or ended, or whose data changed, or which
   * other routers may know than before.
   */
  onSessions(ids: readonly string[]): void
  /** Called when service sessions end for any reason. */
  onEnded(sessions: readonly EndedSession[]): void
  /**
   * Called with the ids of routers that may know other sessions than before, although the sessions
   * themselves did not change; null: all routers.
   */
  onRouters(ids: readonly string[] | null): void
  /** Called after the whole state was replaced, so that all sessions may differ. */
  onReplaced(): void
}

/** The sessions that a router may know. */
export interface SessionFilter {
  /** Routers whose filters have the same key may know the same sessions. */
  readonly key: string
  has(session: ClientSession): boolean
}

/** The controllers' data about the clients of routers. */
export interface RouterClients {
  /** Ids of all API sessions. */
  sessionIds(): Iterable<string>
  /** The session with this id; null if no router may know it. */
  session(id: string): ClientSession | null
  /** The routers that may know a session. */
  routersOf(session: ClientSession): { has(routerId: string): boolean }
  sessionFilterOf(routerId: string): SessionFilter
  /**
   * Currently valid tokens of an API session, one for each version of the signing key; for an ended
   * session, its former tokens.
   */
  tokensOf(sessionId: string): readonly string[]
  /**
   * Calls the listener when sessions change.
   * @returns a function that stops the calls.
   */
  follow(follower: ClientSessionListener): () => void
  /**
   * Records that a router saw a client. Ignores a token that is invalid, and a session that the
   * router may not know.
   */
  used(routerId: string, token: string): void
  /**
   * The token and the id of a service session that the state does not contain; null if it contains
   * the session.
   * @param token the token of the session, or its id.
   */
  goneSession(token: string): EndedServiceSession | null
  judge(claim: ClientAccessRequest): Promise<ClientAccessDecision>
  /**
   * Processes a posture report that the device of an OIDC client sent to its router.
   * @returns true if the client exists and the router may know it.
   * @throws {Problem} as `PostureService.report`.
   */
  report(client: ReportedClient, reports: readonly PostureReport[]): Promise<boolean>
}
