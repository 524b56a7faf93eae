import type { PostureReport } from './posture.ts'

/** An API session whose client may connect to edge routers. */
export interface ClientSession {
  readonly id: string
  readonly identityId: string
  /** Hex SHA-1 of the certificates that its client may show. */
  readonly fingerprints: readonly string[]
}

/** Claim of a client that wants to dial or to host, as its router shows it. */
export interface ClientClaim {
  readonly routerId: string
  /** The token of the service session; '' where the client names the service itself. */
  readonly sessionToken: string
  /** The service that a client of OIDC names; absent: it shows a session for one. */
  readonly serviceId?: string
  /** The identity that the router takes it for; absent: the router does not say. */
  readonly identityId?: string
  readonly apiSessionToken: string
  /** Hex SHA-1 of what the client showed the router; may be empty with a `serviceId` alone. */
  readonly fingerprints: readonly string[]
  readonly type: 'Dial' | 'Bind'
  /**
   * True if the router evaluates the posture of OIDC clients itself, and has done so for this one.
   */
  readonly isJudgedByRouter?: boolean
}

/** A client, as a router shows it. */
export type ShownClient = Pick<ClientClaim, 'routerId' | 'apiSessionToken' | 'fingerprints'>

/** The client of a valid claim. */
export interface AdmittedClient {
  readonly sessionId: string
  readonly apiSessionId: string
  readonly serviceId: string
  readonly identityId: string
  readonly identityName: string
}

export type ClaimFault =
  | 'apiSession'
  | 'session'
  | 'sessionType'
  | 'service'
  | 'router'
  | 'access'
  | 'posture'

export type JudgedClaim =
  | { readonly ok: true; readonly client: AdmittedClient }
  | { readonly ok: false; readonly fault: ClaimFault }

/** A service session that is over, and the API session that it was of. */
export interface EndedSession {
  readonly id: string
  readonly apiSessionId: string
}

export interface GoneSession {
  readonly token: string
  readonly id: string
}

export interface ClientFollower {
  /** API sessions that came or went, or differ in what routers know of them, or in which may. */
  onSessions(ids: readonly string[]): void
  /** Called when API sessions end for any reason. */
  onEnded(sessions: readonly EndedSession[]): void
  /**
   * Routers whose set of visible sessions may have changed while the sessions themselves did not;
   * null: all routers.
   */
  onRouters(ids: readonly string[] | null): void
  /** All of them may differ. */
  onReplaced(): void
}

/** Identities whose sessions a router may know. */
export interface SessionAudience {
  /** The same for routers that may know the same sessions. */
  readonly key: string
  has(session: ClientSession): boolean
}

/** Knowledge of controllers about the clients of routers. */
export interface RouterClients {
  /** Ids of all API sessions. */
  sessionIds(): Iterable<string>
  /** null where no router may know it. */
  session(id: string): ClientSession | null
  /** The routers that may know a session. */
  routersOf(session: ClientSession): { has(routerId: string): boolean }
  audienceOf(routerId: string): SessionAudience
  /**
   * Tokens of an API session that are honoured now, one for each version of the key that signs
   * them; of one that is gone, those that it had.
   */
  tokensOf(sessionId: string): readonly string[]
  /** @returns the way to end it. */
  follow(follower: ClientFollower): () => void
  /**
   * Its client was seen at a router; a token that is not honoured, or that the router has no
   * business with, is passed over.
   */
  used(routerId: string, token: string): void
  /** Finds a service session that is gone, by token or id: with the id where it is known. */
  goneSession(token: string): GoneSession | null
  judge(claim: ClientClaim): Promise<JudgedClaim>
  /**
   * Processes a posture report that the device of an OIDC client sent to its router.
   * @returns true if the client exists and the router may know it.
   * @throws {Problem} as `PostureService.report`.
   */
  report(client: ShownClient, reports: readonly PostureReport[]): Promise<boolean>
}
