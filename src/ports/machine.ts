import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import type { Entry, Index, Position } from '../raft/types.ts'
import type { AuditRecord } from './audit.ts'
import type { Outcome } from './proposer.ts'
import type { ApplyProgress, StoreReceiver, StoreSnapshot } from './state-store.ts'

export interface AppliedEntry {
  readonly index: Index
  /** Origin of its proposal; null for entries without one. `storeId` is hex. */
  readonly origin: {
    readonly storeId: string
    readonly boot: number
    readonly sequence: number
  } | null
  /** null for a noop or configuration entry. */
  readonly outcome: Outcome | null
  /** null where nothing was done, and for what is not audited. */
  readonly audit: AuditRecord | null
}

export interface Digests {
  readonly index: Index
  /** Hex. `state`: all that apply reads; `entities`: what clients can see. */
  readonly state: string
  readonly entities: string
}

/**
 * The replicated state machine as the cluster room drives it. All calls but the async ones are
 * synchronous.
 */
export interface Machine {
  progress(): ApplyProgress
  /**
   * Position of the store on disk, and the configuration in force there: the log's beginning at
   * start.
   */
  persistedMark(): {
    readonly position: Position
    readonly configuration: ConfigurationRecord
    /** Log time at `position`, UTC ms: later stamps never run behind it. */
    readonly timeMs: number
  }
  /**
   * Applies entries in index order, without gaps; an applied index is passed over. Nothing of the
   * entry's bytes is kept.
   * @throws when the entry cannot be decoded or its kind is unknown: the node must stop applying,
   * never step over it.
   */
  apply(entry: Entry): AppliedEntry
  /**
   * True when so many applied entries are not yet written that apply should wait for the store.
   * `onPersisted` says when to check again.
   */
  readonly isBehind: boolean
  digests(): Digests
  /** Log time as of what is applied, UTC ms. */
  readonly logTimeMs: number
  /** How far it is behind the stamps of the log, since it was brought back. */
  readonly setbackMs: number
  /** The feature level in force: a command that needs a higher one is not proposed. */
  readonly featureLevel: number
  /** Resolves once `index` is applied; false when `timeoutMs` passed first. */
  waitForApplied(index: Index, timeoutMs: number): Promise<boolean>
  /** Called after each durable write-behind batch. */
  onPersisted: (position: Position) => void
  /** Called when the store fails; nothing is persisted after it and the process must stop. */
  onFailed: (error: Error) => void
  snapshot(): Promise<StoreSnapshot>
  receive(): Promise<StoreReceiver>
  /**
   * Swaps to a received, finished store and rebuilds memory from it, without a restart; readers see
   * old or new.
   */
  restore(receiver: StoreReceiver): Promise<void>
  /** Writes what is left behind and closes the store. */
  close(): Promise<void>
}
