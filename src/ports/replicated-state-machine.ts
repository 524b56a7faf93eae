import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import type { Entry, Index, Position } from '../raft/types.ts'
import type { AuditRecord } from './audit.ts'
import type { Outcome } from './proposer.ts'
import type { ApplyProgress, StoreReceiver, StoreSnapshot } from './state-store.ts'

/** Result of applying one entry. */
export interface AppliedEntry {
  readonly index: Index
  /**
   * The proposal from which the entry comes; null for entries that no controller proposed.
   * `storeId` is hex.
   */
  readonly origin: {
    readonly storeId: string
    readonly boot: number
    readonly sequence: number
  } | null
  /**
   * Decision of the state machine; null for a no-op, a configuration entry and a repeated command.
   */
  readonly outcome: Outcome | null
  /**
   * Audit record of the entry; null for an entry without a command, for a repeated command, and for
   * a command that is not audited.
   */
  readonly audit: AuditRecord | null
}

/** Digests of the state after an entry. */
export interface StateDigests {
  readonly index: Index
  /**
   * Digest, in hex, of everything that the apply step reads. `entities` is the digest, in hex, of
   * everything that clients can see.
   */
  readonly state: string
  readonly entities: string
}

/** The replicated state machine, as the cluster code uses it. */
export interface ReplicatedStateMachine {
  progress(): ApplyProgress
  /**
   * Position and configuration that the store has on disk. At start, the controller applies the log
   * from this position on.
   */
  persistedMark(): {
    readonly position: Position
    readonly configuration: ConfigurationRecord
    /**
     * Log time at `position`, UTC ms. Log time of later entries is not earlier, unless an operator
     * resets log time.
     */
    readonly timeMs: number
  }
  /**
   * Applies entries in index order, without gaps; skips an entry that was applied earlier. Keeps no
   * reference to the entry's bytes.
   * @throws when the entry cannot be decoded or its kind is unknown. The node must then stop
   * applying, and never skip the entry.
   */
  apply(entry: Entry): AppliedEntry
  /**
   * True when the store has not yet written too many of the applied entries: the caller should
   * apply no further entry, and check again at `onPersisted`.
   */
  readonly isBehind: boolean
  digests(): StateDigests
  /** Log time of the applied state, UTC ms. */
  readonly logTimeMs: number
  /**
   * The number of ms by which log time is behind the timestamps of log entries, because an operator
   * reset log time.
   */
  readonly setbackMs: number
  /**
   * The current feature level of the cluster. The proposer does not propose a command that requires
   * a higher one.
   */
  readonly featureLevel: number
  /** Resolves with true once `index` is applied, with false when `timeoutMs` passed first. */
  waitForApplied(index: Index, timeoutMs: number): Promise<boolean>
  /** Called each time after the store has durably written a batch of changes. */
  onPersisted: (position: Position) => void
  /**
   * Called when the store fails. The store writes nothing afterwards, and the process must stop.
   */
  onFailed: (error: Error) => void
  snapshot(): Promise<StoreSnapshot>
  receive(): Promise<StoreReceiver>
  /**
   * Replaces the state with a complete store that another controller sent, and rebuilds the state
   * in memory, without a restart. A reader sees either the old or the new state.
   */
  restore(receiver: StoreReceiver): Promise<void>
  /** Writes the remaining changes and closes the store. */
  close(): Promise<void>
}
