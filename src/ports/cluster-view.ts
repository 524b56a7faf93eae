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

/** A member as this controller sees it now: the replicated record plus what is live. */
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
   * `tls:host:port` where routers reach it; null: it takes none, or has not been heard of
   * (`startedAtMs` 0).
   */
  readonly routerAddress: string | null
  readonly certificatePem: string
  /**
   * The newest feature level that its version knows; 0 when it was not heard since this controller
   * started.
   */
  readonly featureLevel: number
  /** Start of its current process, UTC ms; 0 when never heard of. */
  readonly startedAtMs: number
  /** Since this controller last heard from it; 0 for itself, null when never. */
  readonly lastContactMs: number | null
  readonly progress: MemberProgress | null
  /** It is in contact with no leader, as far as is known here: writes through it wait or fail. */
  readonly readOnly: boolean
  readonly vitals: MemberVitals | null
}

/** Report of a member on itself; never older than a few seconds. */
export interface MemberVitals {
  /** Leader that it follows. */
  readonly leaderId: NodeId | null
  /** End of its log. */
  readonly last: Index
  /** Value of the last ten seconds; 0 when nothing was synced. */
  readonly fsyncP99Ms: number
  /** Value of the last ten seconds, of the slowest thread that others wait for. */
  readonly loopDelayP99Ms: number
  /** 0 to 100: the higher one is to lead. */
  readonly priority: number
  /** How far its wall clock is ahead of ours; 0 for this controller itself. */
  readonly clockOffsetMs: number
  /** It does not answer from its state, or is about to stop. */
  readonly isFailing: boolean
}

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

/** The cluster as seen from here; every call is local and needs no quorum, except `readIndex`. */
export interface ClusterView {
  readonly selfId: NodeId
  readonly clusterId: string
  readonly generation: number
  /** Level in force, as applied here. */
  readonly featureLevel: number
  /** Sorted by id. */
  members(): readonly MemberView[]
  leaderId(): NodeId | null
  /**
   * The latest time that the clocks of a majority have reached, seen from here, UTC ms; null while
   * too few of them are known.
   */
  quorumClockMs(): number | null
  /** Since this controller last heard from a leader (0 when it leads). */
  leaderContactMs(): number
  /**
   * A linearizable point (Raft dissertation 6.4): an index >= every write completed before the
   * call, on any controller. Rounds are shared.
   * @throws {Problem} CLUSTER_NO_LEADER when no leader confirms within the limit.
   */
  readIndex(): Promise<Index>
}
