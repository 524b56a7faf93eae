/** A terminator as its router knows it. */
export interface RouterTerminator {
  readonly id: string
  readonly binding: string
  readonly address: string
}

/**
 * A terminator whose host has no service session for hosting the service any more, or may no longer
 * use the router.
 */
export interface UnauthorizedTerminator {
  readonly id: string
  readonly routerId: string
  /** The host's service sessions for hosting the service; empty if there are none any more. */
  readonly sessionIds: readonly string[]
}

/** Terminators that routers have created, for clients that host services and for tunnels. */
export interface HostedTerminators {
  /** Ids of the identities for whose clients routers have created terminators. */
  hosts(): Iterable<string>
  /** The terminators that the router has created, for clients and for its tunnel. */
  ofRouter(routerId: string): Iterable<RouterTerminator>
  /**
   * The identity's terminators at routers that it may no longer use, and of services for which it
   * has no service session for hosting any more.
   */
  ungranted(identityId: string): readonly UnauthorizedTerminator[]
  /** Whether policies let the identity use the router. */
  mayUse(identityId: string, routerId: string): boolean
  /**
   * Follows the loss of rights.
   * @param onEnded called with identities that may have lost a right to host, or to use a router;
   * null: any identity may have lost one.
   * @returns a function that stops the calls.
   */
  follow(onEnded: (identityIds: readonly string[] | null) => void): () => void
}
