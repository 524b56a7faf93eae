import type { Index, NodeId, Role, Term } from '../raft/types.ts'

/**
 * Health of one controller, and of the cluster according to this controller. It is available
 * without a quorum.
 */
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
  /** Number of entries that this controller knows as committed and has not applied. */
  readonly lagEntries: number
  /**
   * Time for which this controller has lacked a committed entry, ms; 0 if it has applied all that
   * it knows.
   */
  readonly lagMs: number
  /** 99th percentile of the durations of fsync in the last ten seconds, ms. */
  readonly fsyncP99Ms: number
  readonly loopDelayP99Ms: { readonly main: number; readonly raft: number }
  readonly members: readonly MemberHealth[]
  readonly voters: number
  /** Number of connected voters, including this controller if it is a voter. */
  readonly votersConnected: number
  /** Number of voters that may fail while writes continue; -1: there is no quorum now. */
  readonly failureTolerance: number
  /** Failure tolerance when all voters are connected. */
  readonly failureToleranceMax: number
  /** Effect of the next failure, as one sentence. */
  readonly nextRisk: string
  readonly alarms: readonly {
    readonly code: string
    readonly text: string
    /** UTC ms since which the alarm is raised. */
    readonly sinceMs: number
    readonly isCritical: boolean
  }[]
}

interface MemberHealth {
  readonly id: NodeId
  readonly voter: boolean
  readonly role: string
  readonly connected: boolean
  /** Time since this controller last heard from the member, ms; null: never. */
  readonly lastContactMs: number | null
  readonly commit: Index
  readonly applied: Index
  readonly lagEntries: number
  readonly fsyncP99Ms: number
  readonly loopDelayP99Ms: number
  readonly clockOffsetMs: number
}
