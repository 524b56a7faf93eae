/**
 * Types of the consensus core, named as in the Raft paper and dissertation. Terms and indexes are
 * safe integers; codecs check 64-bit fields of the wire and the disk.
 */

export type NodeId = string
/** Raft term: 0 before the first election. */
export type Term = number
/** Index of a log entry, from 1; 0: before the first entry. */
export type Index = number

/** A position in the log. Term and index are one value, so that they cannot be swapped. */
export interface Position {
  readonly term: Term
  readonly index: Index
}

/**
 * End of the leader's log, measured after the leader learned of start `boot` of a node with a
 * missing tail.
 */
export interface Attestation {
  readonly boot: number
  readonly lastIndex: Index
}

export type EntryType = 'noop' | 'configuration' | 'command'

/**
 * A log entry; immutable. `timeMs` is the leader's stamp (log time): UTC ms, never decreasing along
 * the log.
 */
export interface Entry {
  readonly index: Index
  readonly term: Term
  readonly timeMs: number
  readonly type: EntryType
  /**
   * `command`: a Command, opaque to the core. `configuration`: membership.v1.Configuration. `noop`:
   * empty.
   */
  readonly data: Uint8Array
}

/** Term and vote change together, in one durable write (zoo 2). */
export interface HardState {
  readonly term: Term
  readonly votedFor: NodeId | null
}

/**
 * Members of a cluster. Both voter sets are non-empty while a change is joint (Raft paper section
 * 6). Lists are sorted.
 */
export interface Configuration {
  readonly voters: readonly NodeId[]
  /** The old half of a joint configuration; empty otherwise. */
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
       * Set when the refusing log may have lost acknowledged entries: its earlier acknowledgements
       * no longer count.
       */
      readonly hasLost?: boolean
    }
  | {
      readonly type: 'heartbeatRequest'
      readonly commit: Index
      readonly readSequence: number
      /** Sent to a peer that reported a missing tail (owed.ts). */
      readonly attested?: Attestation
    }
  | {
      readonly type: 'heartbeatResponse'
      readonly readSequence: number
      readonly clockMs: number
      /** Boot number of the sender's store, while its log has a missing tail (owed.ts). */
      readonly owingBoot?: number
    }
  /**
   * Reports a new commit index between heartbeats; not answered, because the next heartbeat repeats
   * it.
   */
  | { readonly type: 'commitNotice'; readonly commit: Index }
  | { readonly type: 'timeoutNow' }
  /**
   * A whole snapshot, already received and verified beside the live state. The driver steps it in
   * after it has verified the last chunk; the core decides whether to install it.
   */
  | {
      readonly type: 'snapshot'
      readonly position: Position
      /** membership.v1.Configuration bytes in force at `position`. */
      readonly configuration: Uint8Array
    }

/** A message between nodes. A higher term makes its receiver a follower. */
export type Message = MessageBody & {
  readonly from: NodeId
  readonly to: NodeId
  readonly term: Term
}

export type Role = 'follower' | 'preCandidate' | 'candidate' | 'leader'

/**
 * One ordered write. Messages that depend on it must not leave before the disk reports `token`
 * durable.
 */
export interface DiskWrite {
  readonly token: number
  /** Must be written and synced before the entries (zoo 4). */
  readonly hardState: HardState | null
  /**
   * Consecutive entries. The first index may be <= the last one on disk: everything from it on is
   * replaced.
   */
  readonly entries: readonly Entry[]
  /**
   * Highest index known to be committed. Not a promise: it only saves the node from learning it
   * again after a start.
   */
  readonly commit: Index
}

/**
 * The log on disk. Writes are carried out and reported in order; several may share one sync (group
 * commit). After a failure it reports nothing more as durable, and the owner must stop, because a
 * failed fsync loses pages permanently.
 */
export interface Disk {
  write(write: DiskWrite): void
  /**
   * The disk may drop entries through `position`. Called only when the state up to it is durable
   * elsewhere.
   */
  compact(position: Position): void
  /**
   * Replaces the whole log with an empty one that continues after `position`. Ordered with writes;
   * reports `token`.
   */
  reset(position: Position, token: number): void
  /**
   * Records that the log lacks at most the entries up to `owed`, or none if it is null
   * (raft/owed.ts). Ordered with writes, and not reported: if a crash loses the record, the node
   * settles again after its next start.
   */
  settle(owed: Position | null): void
  /**
   * Set once, before the first write. Tokens are reported in order; a later token implies the
   * earlier ones.
   */
  onDurable: (token: number) => void
  onFailed: (error: Error) => void
  close(): Promise<void>
}

/** State found on disk at start. Entries are consecutive and begin after `base`. */
export interface RestoredLog {
  readonly hardState: HardState
  /**
   * Base of the kept log: the last compacted position; {term: 0, index: 0} before any compaction.
   */
  readonly base: Position
  readonly entries: readonly Entry[]
  readonly commit: Index
  /** Counts the starts of this store; already advanced and durable for this start. */
  readonly boot: number
  /**
   * Highest position that the log, damaged since, may have held and may now lack; null: the log is
   * whole.
   */
  readonly owed: Position | null
}

/**
 * May lose messages and reorder those of different peers; keeps the order of one peer while a
 * stream lasts. `send` never waits and never throws.
 */
export interface Transport {
  send(message: Message): void
}
