import type { Index, NodeId, Role, Term } from '../raft/types.ts'

/** Health of one controller, and of the cluster as it sees it, without a quorum. */
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
  /** Time since it last heard from a leader, ms; 0 when it leads. */
  readonly leaderContactMs: number
  readonly commit: Index
  readonly applied: Index
  readonly persisted: Index
  /** Known committed entries that are not applied here. */
  readonly lagEntries: number
  /** Time since apply last had everything that is committed, ms; 0 when it has. */
  readonly lagMs: number
  /** Value of the last ten seconds. */
  readonly fsyncP99Ms: number
  readonly loopDelayP99Ms: { readonly main: number; readonly raft: number }
  readonly members: readonly MemberHealth[]
  readonly voters: number
  /** Including this one, if it has a vote. */
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
