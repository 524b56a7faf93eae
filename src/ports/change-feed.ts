import type { KindName, RecordOf } from '../entities/kind-records.ts'
import type { Index } from '../raft/types.ts'
import type { AuditRecord } from './audit.ts'

/** One record before and after an entry. */
export interface RecordChange<K extends KindName = KindName> {
  /** The kind of its table. */
  readonly kind: K
  readonly id: string
  /** Undefined if the record did not exist. */
  readonly before: RecordOf<K> | undefined
  /** Undefined if the record was deleted. */
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

/** Facts about an entry in addition to its changed records; the same on every controller. */
export interface LogEntryFacts {
  /** Log time, UTC ms. */
  readonly timeMs: number
  /** Null if the entry has no audit record. */
  readonly audit: AuditRecord | null
}

/** Receives the changes of each entry, and a call when the whole state was replaced. */
export interface ChangeListener {
  /**
   * Called within apply, after an entry that has changed such records; `changes` is not empty. Must
   * neither throw nor write.
   */
  onEntry(index: Index, changes: readonly RecordChange[], facts: LogEntryFacts): void
  /** Called when the state was replaced: any record may have changed. */
  onReplaced(): void
}

/** Feed of the changes of entries, for code that keeps data derived from records. */
export interface ChangeFeed {
  /**
   * @param kinds the kinds of records to follow.
   * @returns a function that stops the calls.
   */
  follow(kinds: readonly KindName[], follower: ChangeListener): () => void
}
