/** A terminator as its router knows it. */
export interface RouterTerminator {
  readonly id: string
  readonly binding: string
  readonly address: string
}

/** A terminator whose host has lost the right to host the service, or to use the router. */
export interface UnauthorizedTerminator {
  readonly id: string
  readonly routerId: string
  /** The service sessions with which the host still may host the service. */
  readonly sessionIds: readonly string[]
}

/**
 * Terminators that routers have created for their clients, each with a service session of its host.
 */
export interface HostedTerminators {
  /** Ids of the identities that have terminators. */
  hosts(): Iterable<string>
  /** All terminators of a router, for clients and for its tunnel. */
  ofRouter(routerId: string): Iterable<RouterTerminator>
  /**
   * The identity's terminators for which policies have stopped granting the right to host the
   * service or to use the router.
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
