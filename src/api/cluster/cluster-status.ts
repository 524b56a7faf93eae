/** Status that `cluster status` and `cluster list` show; the JSON that scripts read. */

/** One member in the status of the cluster. */
export interface MemberStatus {
  readonly id: string
  /** host:port of the mesh. */
  readonly address: string
  /** Program version; '' if this controller never received it. */
  readonly version: string
  /**
   * leader, follower, candidate, preCandidate, learner; unknown if this controller never received
   * it.
   */
  readonly role: string
  readonly term: number
  readonly commit: number
  /** Index of the last entry applied in memory. */
  readonly applied: number
  /** Index of the last entry whose effects are on disk. */
  readonly persisted: number
  /** Index at which `digest` was taken. Members are compared at equal indexes. */
  readonly digestIndex: number
  /** Hex digest of the whole state. */
  readonly digest: string
  /**
   * Time since the responding controller last received a message from it; 0 for itself, null if
   * never.
   */
  readonly lastContactMs: number | null
  /** The member reports that it does not answer from its state, or is about to stop. */
  readonly isFailing: boolean
  /** The newest feature level that it supports; 0 if unknown. */
  readonly featureLevel: number
}

/** The cluster as one controller sees it. */
export interface ClusterStatus {
  readonly clusterId: string
  readonly generation: number
  /** Id of the controller that answered. */
  readonly selfId: string
  readonly leaderId: string | null
  /** Sorted by id. */
  readonly members: readonly MemberStatus[]
  /** Number of voters that may fail while writes still succeed; -1: there is no quorum. */
  readonly failureTolerance: number
  /** One sentence: the effect of the next failure. */
  readonly nextRisk: string
  /** Current feature level: the cluster writes nothing that requires a higher one. */
  readonly featureLevel: number
  /**
   * The highest level that some voter supports, if it is above the current one, with the voters
   * that lack it or are not connected; otherwise absent.
   */
  readonly nextFeatureLevel?: { readonly level: number; readonly waitsFor: readonly string[] }
  /** Current faults, as the answering controller sees them. */
  readonly alarms: readonly {
    readonly code: string
    readonly text: string
    /** UTC ms. */
    readonly sinceMs: number
    readonly isCritical: boolean
  }[]
}

/** One member in the list of OpenZiti's operation. */
export interface ListedMember {
  readonly id: string
  /** Address of its APIs, or of its mesh port, in the form that OpenZiti's console reads. */
  readonly address: string
  /** host:port of the mesh. */
  readonly ctrlAddress?: string
  readonly voter: boolean
  readonly leader: boolean
  readonly connected: boolean
  readonly version: string
}
