import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import type { Entry, Index, Position } from '../raft/types.ts'
import type { AuditRecord } from './audit.ts'
import type { Outcome } from './proposer.ts'
import type { ApplyProgress, StoreReceiver, StoreSnapshot } from './state-store.ts'

/** Result of applying one entry. */
export interface AppliedEntry {
  readonly index: Index
  /** Origin of the proposal; null for entries without one. `storeId` is hex. */
  readonly origin: {
    readonly storeId: string
    readonly boot: number
    readonly sequence: number
  } | null
  /** null for a noop or configuration entry. */
  readonly outcome: Outcome | null
  /** null if the entry did nothing, and for commands that are not audited. */
  readonly audit: AuditRecord | null
}

/** Digests of the state after an entry. */
export interface Digests {
  readonly index: Index
  /** Hex. `state`: everything that apply reads; `entities`: everything that clients can see. */
  readonly state: string
  readonly entities: string
}

/**
 * The replicated state machine, as the cluster code uses it. All calls except the async ones are
 * synchronous.
 */
export interface ReplicatedStateMachine {
  progress(): ApplyProgress
  /** Position of the store on disk, and its configuration: where the log begins at start. */
  persistedMark(): {
    readonly position: Position
    readonly configuration: ConfigurationRecord
    /** Log time at `position`, UTC ms. Later entries have no earlier time. */
    readonly timeMs: number
  }
  /**
   * Applies entries in index order, without gaps; an entry that is applied already is skipped.
   * Keeps no reference to the entry's bytes.
   * @throws when the entry cannot be decoded or its kind is unknown. The node must then stop
   * applying, and never skip the entry.
   */
  apply(entry: Entry): AppliedEntry
  /**
   * True when too many applied entries are unwritten: apply should wait for the store, and check
   * again at `onPersisted`.
   */
  readonly isBehind: boolean
  digests(): Digests
  /** Log time of the applied state, UTC ms. */
  readonly logTimeMs: number
  /** How far log time is behind the timestamps of the log since log time was reset. */
  readonly setbackMs: number
  /** The current feature level. A command that needs a higher one is not proposed. */
  readonly featureLevel: number
  /** Resolves once `index` is applied; false when `timeoutMs` passed first. */
  waitForApplied(index: Index, timeoutMs: number): Promise<boolean>
  /** Called after each durable write-behind batch. */
  onPersisted: (position: Position) => void
  /** Called when the store fails. Nothing is stored afterwards, and the process must stop. */
  onFailed: (error: Error) => void
  snapshot(): Promise<StoreSnapshot>
  receive(): Promise<StoreReceiver>
  /**
   * Replaces the state with a received, complete store and rebuilds memory from it, without a
   * restart. A reader sees either the old or the new state.
   */
  restore(receiver: StoreReceiver): Promise<void>
  /** Writes the remaining changes and closes the store. */
  close(): Promise<void>
}
