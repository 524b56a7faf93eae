import type { Index, NodeId, Term } from '../raft/types.ts'

/**
 * Who the members are as far as is known to be committed, kept beside log and state: whom to let in
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
 * What a store has said of itself, as promises that outlive any crash. Never more than it had said
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
 * What a member has said of its disk, for the next process here to hold it to; see
 * cluster/witness.ts.
 */
export interface PeerDiskRecord {
  readonly id: NodeId
  /** Of the cluster: in another one, disks may be older. */
  readonly generation: number
  readonly storeId: Uint8Array
  /** Which start of the store it was. */
  readonly boot: bigint
  readonly startedAtMs: bigint
  /** In that life, on the streams that the peer dialled. */
  readonly heard: DiskPromise
  /** In that life, in answer to our dialling. */
  readonly answered: DiskPromise
  /** In the lives before. */
  readonly past: DiskPromise
}
