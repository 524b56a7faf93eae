/** An API session whose client may connect to edge routers. */
export interface ClientSession {
  readonly id: string
  readonly identityId: string
  /** All that are honoured now, one for each version of the key that signs them. */
  readonly tokens: readonly string[]
  /** Hex SHA-1 of the certificates that its client may show. */
  readonly fingerprints: readonly string[]
}

/** What a router shows of a client that wants to dial or to host. */
export interface ClientClaim {
  readonly routerId: string
  /** Of the service session. */
  readonly sessionToken: string
  readonly apiSessionToken: string
  /** Hex SHA-1 of what the client showed the router. */
  readonly fingerprints: readonly string[]
  readonly type: 'Dial' | 'Bind'
}

/** Whoever a claim is right for. */
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

export interface ClientFollower {
  /** Sessions that came, or changed in what a router knows of them, and such that are gone. */
  onChanged(changed: readonly ClientSession[], goneIds: readonly string[]): void
  /** All of them may differ. */
  onReplaced(): void
}

/** What controllers know of the clients of routers. */
export interface RouterClients {
  sessions(): Iterable<ClientSession>
  /** Tokens that a session had, for one that is gone. */
  tokensOf(sessionId: string): readonly string[]
  /** @returns the way to end it. */
  follow(follower: ClientFollower): () => void
  /** Its client was seen at a router; a token that is not honoured is passed over. */
  used(token: string): void
  /** Of service sessions: those of them that are gone. */
  goneSessions(tokens: readonly string[]): Promise<readonly string[]>
  judge(claim: ClientClaim): Promise<JudgedClaim>
}
