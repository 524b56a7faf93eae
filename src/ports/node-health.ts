import type { Index, NodeId, Role, Term } from '../raft/types.ts'

/** Health of one controller, and of the cluster as this controller sees it, without a quorum. */
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
  /** Time since this controller last heard from a leader, ms; 0 when it leads. */
  readonly leaderContactMs: number
  readonly commit: Index
  readonly applied: Index
  readonly persisted: Index
  /** Number of known committed entries that are not applied here. */
  readonly lagEntries: number
  /**
   * Time since this controller had last applied every committed entry, ms; 0 if it has applied all
   * of them now.
   */
  readonly lagMs: number
  /** 99th percentile of the last ten seconds. */
  readonly fsyncP99Ms: number
  readonly loopDelayP99Ms: { readonly main: number; readonly raft: number }
  readonly members: readonly MemberHealth[]
  readonly voters: number
  /** Number of connected voters, including this controller if it is a voter. */
  readonly votersConnected: number
  /** Number of voters that may fail while writes continue; -1: there is no quorum now. */
  readonly failureTolerance: number
  /** One sentence on the effect of the next failure. */
  readonly nextRisk: string
  readonly alarms: readonly {
    readonly code: string
    readonly text: string
    /** UTC ms. */
    readonly sinceMs: number
    readonly isCritical: boolean
  }[]
}

interface MemberHealth {
  readonly id: NodeId
  readonly voter: boolean
  readonly role: string
  readonly connected: boolean
  /** null: never. */
  readonly lastContactMs: number | null
  readonly commit: Index
  readonly applied: Index
  readonly lagEntries: number
  readonly fsyncP99Ms: number
  readonly loopDelayP99Ms: number
  readonly clockOffsetMs: number
}
