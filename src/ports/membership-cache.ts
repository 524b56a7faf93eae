import type { Index, NodeId, Term } from '../raft/types.ts'

/**
 * Members as far as is known to be committed, kept beside log and state: whom to admit
 * and to dial before the own log says so, and what must be on their disks.
 */
export interface MembershipRecord {
  /** membership.v1.Configuration, encoded. */
  readonly configuration: Uint8Array
  /** Log index as of which it is in force. */
  readonly index: Index
  /** mesh.v1.AddressClaim each, encoded and signed: where members have said they are reached. */
  readonly claims: readonly Uint8Array[]
  /** One a member that has said anything. */
  readonly marks: readonly PeerDiskRecord[]
}

/**
 * Promises of a store about itself, which outlive any crash. Never more than it had said
 * to be durable.
 */
export interface DiskPromise {
  readonly term: Term
  /** Held in `term`, acknowledged to its leader or begun by it. */
  readonly index: Index
  /** Committed and applied. */
  readonly applied: Index
}

/**
 * Report of a member on its disk, for the next process here to hold it to; see
 * cluster/witness.ts.
 */
export interface PeerDiskRecord {
  readonly id: NodeId
  /** Generation of the cluster: in another one, disks may be older. */
  readonly generation: number
  readonly storeId: Uint8Array
  /** Number of the start of the store. */
  readonly boot: bigint
  readonly startedAtMs: bigint
  /** Promise of that start, heard on the streams that the peer dialled. */
  readonly heard: DiskPromise
  /** Promise of that start, in answer to our dialling. */
  readonly answered: DiskPromise
  /** Promise of the starts before. */
  readonly past: DiskPromise
}
