/**
 * Types of the Raft core, named as in the Raft paper and dissertation. Terms and indexes are safe
 * integers; codecs check 64-bit fields of the wire and the disk.
 */

export type NodeId = string
/** Raft term: 0 before the first election. */
export type Term = number
/** Index of a log entry, counted from 1; 0 is the position before the first entry. */
export type Index = number

/** A position in the log. Term and index are one value, so that they cannot be swapped. */
export interface Position {
  readonly term: Term
  readonly index: Index
}

/**
 * End of the leader's log. The leader measured it after it had learned that a node with a missing
 * tail had started with boot number `boot`.
 */
export interface Attestation {
  readonly boot: number
  readonly lastIndex: Index
}

export type EntryType = 'noop' | 'configuration' | 'command'

/**
 * A log entry; immutable. `timeMs` is the timestamp that the leader assigned: UTC ms, never
 * decreasing along the log. After a reset of log time, it is ahead of log time.
 */
export interface Entry {
  readonly index: Index
  readonly term: Term
  readonly timeMs: number
  readonly type: EntryType
  /**
   * `command`: a Command that the Raft core does not interpret. `configuration`:
   * membership.v1.Configuration. `noop`: empty.
   */
  readonly data: Uint8Array
}

/** Term and vote are always written together, in one durable write (bug 2 in `test/zoo/`). */
export interface HardState {
  readonly term: Term
  readonly votedFor: NodeId | null
}

/**
 * Members of a cluster. While a change is joint, both sets of voters are non-empty (Raft paper
 * section 6). Lists are sorted.
 */
export interface Configuration {
  readonly voters: readonly NodeId[]
  /** The old voters during a joint configuration; empty otherwise. */
  readonly outgoingVoters: readonly NodeId[]
  readonly learners: readonly NodeId[]
}

export type MessageBody =
  | {
      readonly type: 'voteRequest'
      readonly pre: boolean
      readonly last: Position
      readonly transfer: boolean
    }
  | { readonly type: 'voteResponse'; readonly pre: boolean; readonly granted: boolean }
  | {
      readonly type: 'appendRequest'
      readonly previous: Position
      readonly commit: Index
      readonly entries: readonly Entry[]
    }
  | {
      readonly type: 'appendResponse'
      readonly success: boolean
      readonly matchIndex: Index
      readonly hint: Position
      readonly rejectedIndex: Index
      /**
       * Set by a node whose log may have lost acknowledged entries. The leader must then forget the
       * earlier acknowledgments of this node.
       */
      readonly hasLost?: boolean
    }
  | {
      readonly type: 'heartbeatRequest'
      readonly commit: Index
      readonly readSequence: number
      /** Sent to a peer that reported a missing tail (missing-tail.ts). */
      readonly attested?: Attestation
    }
  | {
      readonly type: 'heartbeatResponse'
      readonly readSequence: number
      readonly clockMs: number
      /**
       * Boot number of the sender's store; present while the sender's log has a missing tail
       * (missing-tail.ts).
       */
      readonly owingBoot?: number
    }
  /**
   * Reports a new commit index between heartbeats. The receiver does not respond, because the next
   * heartbeat repeats the index.
   */
  | { readonly type: 'commitNotice'; readonly commit: Index }
  | { readonly type: 'timeoutNow' }
  /**
   * A whole snapshot, already received and verified but not yet the current state. The driver
   * passes it to the Raft core after it has verified the last chunk; the core decides whether to
   * install it.
   */
  | {
      readonly type: 'snapshot'
      readonly position: Position
      /** Bytes of the membership.v1.Configuration that applies at `position`. */
      readonly configuration: Uint8Array
    }

/**
 * A message between nodes. A receiver with a lower term adopts the term and becomes a follower,
 * except for the messages that `receive.ts` lists, such as pre-votes.
 */
export type Message = MessageBody & {
  readonly from: NodeId
  readonly to: NodeId
  readonly term: Term
}

export type Role = 'follower' | 'preCandidate' | 'candidate' | 'leader'

/**
 * One ordered write. Messages that depend on it must not be sent before the disk reports `token` as
 * durable.
 */
export interface DiskWrite {
  readonly token: number
  /** Must be written and synced before the entries (bug 4 in `test/zoo/`). */
  readonly hardState: HardState | null
  /**
   * Consecutive entries. If the first index is <= the last index on disk, the disk replaces
   * everything from the first index on.
   */
  readonly entries: readonly Entry[]
  /**
   * Highest index known to be committed. The value is not a promise; it only lets the node know
   * this index immediately after a start.
   */
  readonly commit: Index
}

/**
 * The log on disk. The disk carries out and reports writes in order; several may share one sync
 * (group commit). After a failure the disk reports nothing more as durable, and the owner must
 * stop, because a failed fsync loses pages permanently.
 */
export interface Disk {
  write(write: DiskWrite): void
  /**
   * Allows the disk to drop entries through `position`. Called only when the state up to `position`
   * is durable outside the log.
   */
  compact(position: Position): void
  /**
   * Replaces the whole log with an empty log that continues after `position`. Ordered with other
   * writes; the disk reports `token` once the replacement is durable.
   */
  reset(position: Position, token: number): void
  /**
   * Persists the position up to which acknowledged entries may be missing (raft/missing-tail.ts);
   * null means that none is missing. Ordered with other writes, but reports no token. If a crash
   * loses this record, the node repeats this step after its next start.
   */
  settle(owed: Position | null): void
  /**
   * Called with the tokens of durable writes, in order; a token also means that all earlier tokens
   * are durable. Set once, before the first write.
   */
  onDurable: (token: number) => void
  onFailed: (error: Error) => void
  close(): Promise<void>
}

/** Log found on disk at start. Its entries are consecutive and begin after `base`. */
export interface RestoredLog {
  readonly hardState: HardState
  /**
   * Base of the retained log: the position before its first entry; {term: 0, index: 0} if it begins
   * with the first entry of the cluster.
   */
  readonly base: Position
  readonly entries: readonly Entry[]
  readonly commit: Index
  /** Number of starts of this store, including this one; already durable. */
  readonly boot: number
  /**
   * Highest position that the log may have contained before it was damaged and may lack now; null
   * if nothing is missing.
   */
  readonly owed: Position | null
}

/**
 * Transport between nodes. It may lose messages, and may reorder messages of different peers;
 * messages of the same peer stay in order while a connection lasts. `send` never waits and never
 * throws.
 */
export interface Transport {
  send(message: Message): void
}
