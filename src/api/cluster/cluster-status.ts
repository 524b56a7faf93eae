// JSON status that `cluster status` and `cluster list` show and that scripts read.

/** One member in the status of the cluster. */
export interface MemberStatus {
  readonly id: string
  /** host:port of the member's mesh listener. */
  readonly address: string
  /** Program version; '' if this controller never received the version. */
  readonly version: string
  /**
   * leader, follower, candidate, preCandidate, learner; unknown if this controller never received
   * the role.
   */
  readonly role: string
  readonly term: number
  readonly commit: number
  /** Index of the last entry applied in memory. */
  readonly applied: number
  /** Index of the last entry whose effects are on disk. */
  readonly persisted: number
  /** Index at which `digest` was computed. Compare digests of members only at equal indexes. */
  readonly digestIndex: number
  /** Hex digest of the whole state. */
  readonly digest: string
  /**
   * Time since the responding controller last received a message from the member; 0 for the
   * responding controller itself, null if never.
   */
  readonly lastContactMs: number | null
  /**
   * True if the member reports that it serves no requests from its state, or that it is about to
   * stop.
   */
  readonly isFailing: boolean
  /** The newest feature level that the member supports; 0 if unknown. */
  readonly featureLevel: number
}

/** The cluster as one controller sees it. */
export interface ClusterStatus {
  readonly clusterId: string
  readonly generation: number
  /** Id of the responding controller. */
  readonly selfId: string
  readonly leaderId: string | null
  /** The members, sorted by id. */
  readonly members: readonly MemberStatus[]
  /** Number of voters that may fail while writes still succeed; -1: there is no quorum. */
  readonly failureTolerance: number
  /**
   * Failure tolerance when all voters are connected; absent in the response of a release before
   * 0.3.0.
   */
  readonly failureToleranceMax?: number
  /** One sentence that states the effect of the next failure. */
  readonly nextRisk: string
  /** Current feature level: the cluster writes nothing that requires a higher level. */
  readonly featureLevel: number
  /**
   * The highest feature level that some voter supports, with the voters that lack it or are not
   * connected; absent unless it is above the current level.
   */
  readonly nextFeatureLevel?: { readonly level: number; readonly waitsFor: readonly string[] }
  /** Current faults, as the responding controller sees them. */
  readonly alarms: readonly {
    readonly code: string
    readonly text: string
    /** Time at which the alarm was raised, UTC ms. */
    readonly sinceMs: number
    readonly isCritical: boolean
  }[]
}

/** One member in OpenZiti's list of members. */
export interface OpenZitiMember {
  readonly id: string
  /**
   * Address of the member's APIs, or of its mesh port, written as OpenZiti's console expects it.
   */
  readonly address: string
  /** host:port of the member's mesh listener. */
  readonly ctrlAddress?: string
  readonly voter: boolean
  readonly leader: boolean
  readonly connected: boolean
  readonly version: string
}
