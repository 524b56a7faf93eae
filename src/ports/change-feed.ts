import type { KindName, RecordOf } from '../entities/kind-records.ts'
import type { Index } from '../raft/types.ts'
import type { AuditRecord } from './audit.ts'

/** A record before and after one entry. */
export interface RecordChange<K extends KindName = KindName> {
  /** Kind that owns the table in which the record is stored. */
  readonly kind: K
  readonly id: string
  /** The record before the entry; undefined if it did not exist. */
  readonly before: RecordOf<K> | undefined
  /** The record after the entry; undefined if the entry deleted it. */
  readonly after: RecordOf<K> | undefined
}

/** Changes, grouped by the kind that owns the table of the changed records. */
interface ChangesByKind {
  get<K extends KindName>(kind: K): readonly RecordChange<K>[] | undefined
  has(kind: KindName): boolean
}

export function changesByKind(changes: readonly RecordChange[]): ChangesByKind {
  return Map.groupBy(changes, ({ kind }) => kind) as ChangesByKind
}

export function isChangeOfKind<K extends KindName>(
  change: RecordChange,
  kind: K,
): change is RecordChange<K> & RecordChange {
  return change.kind === kind
}

/** Facts about an entry in addition to its changed records. They are equal on every controller. */
export interface LogEntryFacts {
  /** Log time, UTC ms. */
  readonly timeMs: number
  /** Audit record of the entry; null if it has none. */
  readonly audit: AuditRecord | null
}

/** Listens for the changes of each entry, and for a replacement of the whole state. */
export interface ChangeListener {
  /**
   * Called in the apply step, after an entry that has changed records of the followed kinds.
   * `changes` contains only changes of these kinds, and is not empty. Must neither throw nor write.
   */
  onEntry(index: Index, changes: readonly RecordChange[], facts: LogEntryFacts): void
  /**
   * Called after a snapshot or backup replaced the state, so that any record may differ, and after
   * `onEntry` has thrown.
   */
  onReplaced(): void
}

/** Publishes the changes of each entry to code that keeps data derived from records. */
export interface ChangeFeed {
  /**
   * Calls the listener for changes to records of some kinds.
   * @param kinds the kinds of records to follow.
   * @returns a function that stops the calls.
   */
  follow(kinds: readonly KindName[], follower: ChangeListener): () => void
}
