import type { Index, NodeId, Term } from '../raft/types.ts'

/**
 * The last members known to be committed, stored beside log and state. Until the log is read, this
 * record says which peers to admit and to dial, and what their disks must contain.
 */
export interface MembershipRecord {
  /** membership.v1.Configuration, encoded. */
  readonly configuration: Uint8Array
  /** Log index of the configuration. */
  readonly index: Index
  /** Encoded and signed mesh.v1.AddressClaim messages, in which members publish their addresses. */
  readonly claims: readonly Uint8Array[]
  /** One disk report for each member that has reported about its disk. */
  readonly marks: readonly PeerDiskRecord[]
}

/**
 * Promises of a store about its content, which hold even after a crash. They never exceed what the
 * store has reported as durable.
 */
export interface DurablePosition {
  readonly term: Term
  /**
   * Index of the last durable entry in `term`, which the store acknowledged to that term's leader,
   * or appended as that leader.
   */
  readonly index: Index
  /** Committed and applied. */
  readonly applied: Index
}

/**
 * Report of a member about its disk. The next process of this controller compares later reports
 * with it; see cluster/mesh/rollback-detector.ts.
 */
export interface PeerDiskRecord {
  readonly id: NodeId
  /**
   * Generation of the cluster. The record does not apply in another generation, in which disks may
   * be older.
   */
  readonly generation: number
  readonly storeId: Uint8Array
  /** Number of starts of the store. */
  readonly boot: bigint
  readonly startedAtMs: bigint
  /** Promise since that start, received on streams that the peer dialed. */
  readonly heard: DurablePosition
  /** Promise since that start, received on streams that this controller dialed. */
  readonly answered: DurablePosition
  /** Promise of earlier starts of the store. */
  readonly past: DurablePosition
}
