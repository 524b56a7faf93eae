import type { Index, NodeId, Term } from '../raft/types.ts'

/**
 * The last committed membership configuration that this controller knows, stored in addition to log
 * and state. Until this controller has read the log, the record says which peers to admit and to
 * dial, and which positions their disks must have reached.
 */
export interface MembershipRecord {
  /** membership.v1.Configuration, encoded. */
  readonly configuration: Uint8Array
  /** Log index of the configuration. */
  readonly index: Index
  /** Encoded and signed mesh.v1.AddressClaim messages, in which members publish their addresses. */
  readonly claims: readonly Uint8Array[]
  /** The last disk report of each member that has sent one. */
  readonly marks: readonly PeerDiskRecord[]
}

/**
 * Log positions that a store promises to contain, even after a crash. They never exceed the
 * positions that the store has reported as durable.
 */
export interface DurablePosition {
  readonly term: Term
  /**
   * Index of the last durable entry in `term`, which the store acknowledged to that term's leader,
   * or appended as that leader.
   */
  readonly index: Index
  /** Index of the last entry that the store's controller knew as committed and had applied. */
  readonly applied: Index
}

/**
 * Report of a member about its disk. The next process of this controller compares later reports
 * with it; see cluster/mesh/rollback-detector.ts.
 */
export interface PeerDiskRecord {
  readonly id: NodeId
  /**
   * Generation of the cluster. Ignore the record in another generation, because a recovery may have
   * restored older disks.
   */
  readonly generation: number
  readonly storeId: Uint8Array
  /** How many times the store has been started. */
  readonly boot: bigint
  readonly startedAtMs: bigint
  /** Position that the peer promised since its last start, on streams that the peer dialed. */
  readonly heard: DurablePosition
  /**
   * Position that the peer promised since its last start, on streams that this controller dialed.
   */
  readonly answered: DurablePosition
  /** Position that the peer promised before its last start. */
  readonly past: DurablePosition
}
