/** A terminator as its router knows it. */
export interface RouterTerminator {
  readonly id: string
  readonly binding: string
  readonly address: string
}

/** Terminators that routers have made for their clients, each by a service session of its host. */
export interface HostedTerminators {
  /** Identities that host something. */
  hosts(): Iterable<string>
  /** All that a router has made, for clients and for its own tunnel. */
  ofRouter(routerId: string): Iterable<RouterTerminator>
  /**
   * Ids of those terminators of an identity that no service session lets it host any more, or at a
   * router that it may not use any more.
   */
  ungranted(identityId: string): readonly string[]
  /** Policies let the identity use the router. */
  mayUse(identityId: string, routerId: string): boolean
  /**
   * Called with identities that may have lost a right to host, or to use a router; null: any may
   * have.
   * @returns a function that stops the calls.
   */
  follow(onEnded: (identityIds: readonly string[] | null) => void): () => void
}
