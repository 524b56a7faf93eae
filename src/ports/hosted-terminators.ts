/** Terminators that routers have made for their clients, each by a service session of its host. */
export interface HostedTerminators {
  /** Identities that host something. */
  hosts(): Iterable<string>
  /** Ids of those terminators of an identity that no service session lets it host any more. */
  ungranted(identityId: string): readonly string[]
  /**
   * Told of identities that have lost a service session for hosting.
   * @returns the way to end it.
   */
  follow(onEnded: (identityIds: readonly string[] | null) => void): () => void
}
