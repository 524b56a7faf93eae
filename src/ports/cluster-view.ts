import type { Index, NodeId, Role, Term } from '../raft/types.ts'

export interface ApiAddress {
  readonly api: string
  readonly url: string
  readonly version: string
}

/**
 * Name of the address at which routers reach a member, published beside the addresses of its APIs.
 */
export const ROUTER_ADDRESS_NAME = 'router-control'

/** A member as this controller sees it now: the replicated record, with live data. */
export interface MemberView {
  readonly id: NodeId
  /** host:port of the mesh. */
  readonly address: string
  readonly voter: boolean
  readonly leader: boolean
  /** A member lists itself as connected. */
  readonly connected: boolean
  readonly version: string
  readonly apiAddresses: readonly ApiAddress[]
  /**
   * `tls:host:port` at which routers reach the member, in the order in which they try them; empty:
   * the member accepts no routers, or its addresses are unknown (`startedAtMs` 0).
   */
  readonly routerAddresses: readonly string[]
  readonly certificatePem: string
  /**
   * The newest feature level that its version supports; 0 if this controller has not heard from it
   * since its start.
   */
  readonly featureLevel: number
  /** Start of its current process, UTC ms; 0 if unknown. */
  readonly startedAtMs: number
  /** Time since this controller last heard from the member, ms; 0 for itself, null if never. */
  readonly lastContactMs: number | null
  readonly progress: MemberProgress | null
  /** The member knows no leader, so writes through it wait or fail. */
  readonly readOnly: boolean
  readonly vitals: MemberStats | null
}

/** A member's report about itself, at most a few seconds old. */
export interface MemberStats {
  /** Leader that it follows. */
  readonly leaderId: NodeId | null
  /** End of its log. */
  readonly last: Index
  /** 99th percentile of the last ten seconds; 0 when nothing was synced. */
  readonly fsyncP99Ms: number
  /** 99th percentile of the last ten seconds, of the slowest thread. */
  readonly loopDelayP99Ms: number
  /** 0 to 100: the member with the highest value should lead. */
  readonly priority: number
  /**
   * How far the member's wall clock is ahead of this controller's clock (negative: behind); 0 for
   * this controller.
   */
  readonly clockOffsetMs: number
  /** The member does not answer requests from its state, or is about to stop. */
  readonly isFailing: boolean
}

/** Raft state of a member, as it last reported it. */
export interface MemberProgress {
  readonly role: Role | 'learner'
  readonly term: Term
  readonly commit: Index
  readonly applied: Index
  readonly persisted: Index
  readonly digestIndex: Index
  /** Hex of the `state` digest at `digestIndex`. */
  readonly digest: string
  readonly entitiesDigest: string
}

/**
 * The cluster as this controller sees it. Calls are local and need no quorum, except `readIndex`.
 */
export interface ClusterView {
  readonly selfId: NodeId
  readonly clusterId: string
  readonly generation: number
  /** Feature level in the applied state. */
  readonly featureLevel: number
  /** Sorted by id. */
  members(): readonly MemberView[]
  leaderId(): NodeId | null
  /**
   * The latest time that the clocks of a majority have reached, as seen from here, UTC ms; null if
   * too few clocks are known.
   */
  quorumClockMs(): number | null
  /** Time since this controller last heard from a leader, ms (0 when it leads). */
  leaderContactMs(): number
  /**
   * A linearizable read index (Raft dissertation 6.4): at least the index of every write that
   * completed on any controller before the call. Concurrent calls share rounds.
   * @throws {Problem} CLUSTER_NO_LEADER when no leader confirms it within the limit.
   */
  readIndex(): Promise<Index>
}
