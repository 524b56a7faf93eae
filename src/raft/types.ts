/**
 * The words of the consensus core. Terms and indexes are safe integers; a 64-bit field of the wire
 * or the disk is checked at the codec's edge. Words are those of the Raft paper and dissertation.
 */

export type NodeId = string
export type Term = number
export type Index = number

/** A place in the log. Travels as one value, so that term and index are never swapped. */
export interface Position {
  readonly term: Term
  readonly index: Index
}

/** End of the leader's log after it had heard of start `boot` of a node that owes. */
export interface Attestation {
  readonly boot: number
  readonly lastIndex: Index
}

export type EntryType = 'noop' | 'configuration' | 'command'

/**
 * Immutable once made. `timeMs` is the leader's stamp (log time): UTC ms, never running back along
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
 * Members that count. Two non-empty voter sets while a change is joint (Raft paper section 6).
 * Lists are sorted.
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
       * A refusal by a log that lost entries it may have acknowledged: what it said before counts
       * no more.
       */
      readonly hasLost?: boolean
    }
  | {
      readonly type: 'heartbeatRequest'
      readonly commit: Index
      readonly readSequence: number
      /** Sent to a node that has said that it owes. */
      readonly attested?: Attestation
    }
  | {
      readonly type: 'heartbeatResponse'
      readonly readSequence: number
      readonly clockMs: number
      /** Number of the start of its store, while its log owes (owed.ts). */
      readonly owingBoot?: number
    }
  /**
   * Says between heartbeats that the commit index has moved; not answered, as the next heartbeat
   * says it again.
   */
  | { readonly type: 'commitNotice'; readonly commit: Index }
  | { readonly type: 'timeoutNow' }
  /**
   * A whole snapshot, already received and verified beside the live state; the driver steps this in
   * when the last chunk has checked out. The core decides whether it is taken.
   */
  | {
      readonly type: 'snapshot'
      readonly position: Position
      /** membership.v1.Configuration bytes in force at `position`. */
      readonly configuration: Uint8Array
    }

export type Message = MessageBody & {
  readonly from: NodeId
  readonly to: NodeId
  readonly term: Term
}

export type Role = 'follower' | 'preCandidate' | 'candidate' | 'leader'

/** One ordered write. Nothing that depends on it may leave before `token` is reported durable. */
export interface DiskWrite {
  readonly token: number
  /** Written and synced before the entries (zoo 4). */
  readonly hardState: HardState | null
  /**
   * Consecutive. The first index may be <= the last one on disk: everything from there on is
   * replaced.
   */
  readonly entries: readonly Entry[]
  /** Highest index known committed: a hint that spares re-learning it at start; not a promise. */
  readonly commit: Index
}

/**
 * The log on disk. Writes are taken in order and reported in order; several may share one sync
 * (group commit). After a failure nothing more is reported durable and the owner must stop (an
 * fsync error loses pages for good).
 */
export interface Disk {
  write(write: DiskWrite): void
  /**
   * The entries through `position` may be dropped; called only when the state up to there is
   * durable elsewhere.
   */
  compact(position: Position): void
  /**
   * Replaces the whole log by an empty one that continues after `position`. Ordered with writes;
   * reports `token`.
   */
  reset(position: Position, token: number): void
  /**
   * The log lacks no more than what `owed` says, null: nothing (raft/owed.ts). Ordered with writes,
   * and not reported: one that a crash takes away is said again after the next start.
   */
  settle(owed: Position | null): void
  /**
   * Set once, before the first write. Tokens come back in order; a later token implies the earlier
   * ones.
   */
  onDurable: (token: number) => void
  onFailed: (error: Error) => void
  close(): Promise<void>
}

/** State that a start finds on disk. Entries are consecutive and begin after `base`. */
export interface RestoredLog {
  readonly hardState: HardState
  /**
   * Beginning of the kept log: the last position compacted away; {term: 0, index: 0} when nothing
   * was.
   */
  readonly base: Position
  readonly entries: readonly Entry[]
  readonly commit: Index
  /** Counts the starts of this store; already advanced and durable for this start. */
  readonly boot: number
  /**
   * The best position that this disk may have held and that the log, damaged since, may lack; null:
   * it is whole.
   */
  readonly owed: Position | null
}

/**
 * Lossy, unordered across peers, ordered per peer while a stream lasts. `send` never waits and
 * never throws.
 */
export interface Transport {
  send(message: Message): void
}
