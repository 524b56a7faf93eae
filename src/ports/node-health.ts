import type { Index, NodeId, Role, Term } from '../raft/types.ts'

/** How one controller is, and the cluster as it sees it: no quorum is asked. */
export interface NodeHealth {
  readonly id: NodeId
  readonly clusterId: string
  readonly generation: number
  readonly version: string
  /** UTC ms. */
  readonly startedAtMs: number
  readonly role: Role | 'learner'
  readonly term: Term
  readonly leaderId: NodeId | null
  /** Since a leader was last heard from; 0 when it leads. */
  readonly leaderContactMs: number
  readonly commit: Index
  readonly applied: Index
  readonly persisted: Index
  /** Committed anywhere that is known of, and not applied here. */
  readonly lagEntries: number
  /** Since apply was last caught up; 0 when it is. */
  readonly lagMs: number
  /** Value of the last ten seconds. */
  readonly fsyncP99Ms: number
  readonly loopDelayP99Ms: { readonly main: number; readonly raft: number }
  readonly members: readonly MemberHealth[]
  readonly voters: number
  /** This one included, when it has a vote. */
  readonly votersConnected: number
  /** Number of voters that may fail while writes continue; -1: there is no quorum now. */
  readonly failureTolerance: number
  /** One sentence: what the next loss would do. */
  readonly nextRisk: string
  readonly alarms: readonly {
    readonly code: string
    readonly text: string
    /** UTC ms. */
    readonly sinceMs: number
    readonly isCritical: boolean
  }[]
}

export interface MemberHealth {
  readonly id: NodeId
  readonly voter: boolean
  readonly role: string
  readonly connected: boolean
  /** null: never heard from. */
  readonly lastContactMs: number | null
  readonly commit: Index
  readonly applied: Index
  readonly lagEntries: number
  readonly fsyncP99Ms: number
  readonly loopDelayP99Ms: number
  readonly clockOffsetMs: number
}
