/** A terminator as its router knows it. */
export interface RouterTerminator {
  readonly id: string
  readonly binding: string
  readonly address: string
}

/** A terminator that its host no longer has the right to. */
export interface UngrantedTerminator {
  readonly id: string
  readonly routerId: string
  /** The service sessions with which its host still may host the service. */
  readonly sessionIds: readonly string[]
}

/**
 * Terminators that routers have created for their clients, each with a service session of its host.
 */
export interface HostedTerminators {
  /** Identities with terminators. */
  hosts(): Iterable<string>
  /** All terminators of a router, for clients and for its tunnel. */
  ofRouter(routerId: string): Iterable<RouterTerminator>
  /**
   * Terminators of an identity that it may no longer host, or whose router it may no longer use.
   */
  ungranted(identityId: string): readonly UngrantedTerminator[]
  /** Whether policies let the identity use the router. */
  mayUse(identityId: string, routerId: string): boolean
  /**
   * Called with identities that may have lost a right to host, or to use a router; null: any
   * identity may have.
   * @returns a function that stops the calls.
   */
  follow(onEnded: (identityIds: readonly string[] | null) => void): () => void
}
