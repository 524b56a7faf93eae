import type { Index, NodeId, Role, Term } from '../raft/types.ts'

export interface ApiAddress {
  readonly api: string
  readonly url: string
  readonly version: string
}

/**
 * Name of the address at which routers reach a member, published with the addresses of its APIs.
 */
export const ROUTER_ADDRESS_NAME = 'router-control'

/** A member as this controller sees it now: the replicated record, with live data. */
export interface MemberView {
  readonly id: NodeId
  /** host:port of the member's mesh listener. */
  readonly address: string
  readonly voter: boolean
  readonly leader: boolean
  /** True if this controller has a connection to the member; always true for itself. */
  readonly connected: boolean
  readonly version: string
  readonly apiAddresses: readonly ApiAddress[]
  /**
   * `tls:host:port` at which routers reach the member, in the order in which the routers try these
   * addresses; empty: the member accepts no routers, or its addresses are unknown (`startedAtMs`
   * 0).
   */
  readonly routerAddresses: readonly string[]
  readonly certificatePem: string
  /**
   * The newest feature level that the member's version supports; 0 if this controller has not heard
   * from the member since its own start.
   */
  readonly featureLevel: number
  /** Start of the member's current process, UTC ms; 0 if unknown. */
  readonly startedAtMs: number
  /** Time since this controller last heard from the member, ms; 0 for itself, null if never. */
  readonly lastContactMs: number | null
  readonly progress: MemberProgress | null
  /**
   * True if writes through the member would wait or fail, as far as this controller knows: the
   * member is disconnected, knows no leader, or is failing (`MemberStats.isFailing`).
   */
  readonly readOnly: boolean
  readonly vitals: MemberStats | null
}

/** A member's report about itself, at most a few seconds old. */
export interface MemberStats {
  /** The leader that the member follows; null if it knows none. */
  readonly leaderId: NodeId | null
  /** Index of the last entry in the member's log. */
  readonly last: Index
  /**
   * 99th percentile of the durations of fsync in the last ten seconds, ms; 0 if there were none.
   */
  readonly fsyncP99Ms: number
  /**
   * 99th percentile of the event loop delays of the last ten seconds, ms, of the slowest thread.
   */
  readonly loopDelayP99Ms: number
  /** Priority, 0 to 100: the member with the highest priority should lead. */
  readonly priority: number
  /**
   * Milliseconds by which the member's wall clock is ahead of this controller's clock (negative:
   * behind); 0 for this controller.
   */
  readonly clockOffsetMs: number
  /** True if the member does not answer requests from its state, or is about to stop. */
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
 * The cluster as this controller sees it. All methods except `readIndex` answer locally, without a
 * quorum.
 */
export interface ClusterView {
  readonly selfId: NodeId
  readonly clusterId: string
  readonly generation: number
  /** Feature level in the applied state. */
  readonly featureLevel: number
  /** The members, sorted by id. */
  members(): readonly MemberView[]
  leaderId(): NodeId | null
  /**
   * The latest time that the clocks of a majority have reached, according to the members' reports
   * to this controller, UTC ms; null if too few clocks are known.
   */
  quorumClockMs(): number | null
  /** Time since this controller last heard from a leader, ms (0 when it leads). */
  leaderContactMs(): number
  /**
   * A linearizable read index (Raft dissertation 6.4): at least the index of every write that
   * completed on any controller before the call. Concurrent calls share rounds of messages to the
   * voters.
   * @throws {Problem} CLUSTER_NO_LEADER when no leader confirms the index before the timeout;
   * SERVER_TOO_MANY_REQUESTS when too many reads wait; NODE_QUARANTINED during a quarantine.
   */
  readIndex(): Promise<Index>
}
