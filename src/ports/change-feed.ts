import type { KindName, RecordOf } from '../entities/kind-records.ts'
import type { Index } from '../raft/types.ts'
import type { AuditRecord } from './audit.ts'

/** One record before and after an entry. */
export interface RecordChange<K extends KindName = KindName> {
  /** The kind of its table. */
  readonly kind: K
  readonly id: string
  /** Undefined where it was not there. */
  readonly before: RecordOf<K> | undefined
  /** Undefined where it is gone. */
  readonly after: RecordOf<K> | undefined
}

/** Changes by the kind of their table. */
export interface ChangesByKind {
  get<K extends KindName>(kind: K): readonly RecordChange<K>[] | undefined
  has(kind: KindName): boolean
}

export function changesByKind(changes: readonly RecordChange[]): ChangesByKind {
  return Map.groupBy(changes, ({ kind }) => kind) as ChangesByKind
}

export function isChangeOf<K extends KindName>(
  change: RecordChange,
  kind: K,
): change is RecordChange<K> & RecordChange {
  return change.kind === kind
}

/** Facts of an entry beside the records that it changed; the same on every controller. */
export interface EntryFacts {
  /** Log time, UTC ms. */
  readonly timeMs: number
  /** Null where none is kept. */
  readonly audit: AuditRecord | null
}

export interface ChangeFollower {
  /**
   * Within apply, after an entry that has changed such records; `changes` is not empty. Must
   * neither throw nor write.
   */
  onEntry(index: Index, changes: readonly RecordChange[], facts: EntryFacts): void
  /** Another state has taken the place of the one that was followed: everything may differ. */
  onReplaced(): void
}

/** Feed of the changes of entries, for those who keep something that follows from the records. */
export interface ChangeFeed {
  /**
   * @param kinds of tables.
   * @returns the way to end it.
   */
  follow(kinds: readonly KindName[], follower: ChangeFollower): () => void
}
