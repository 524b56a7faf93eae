import type { KindName } from '../../entities/kind-records.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { RecordChange } from '../../ports/change-feed.ts'
import type { Table } from './table.ts'

/** Changes of the records of one kind. */
interface OfKind {
  readonly kind: KindName
  /** The records before the changes, by id. */
  before: Map<string, EntityRecord | undefined>
}

/**
 * Net changes of a series of writes, for the watched kinds. A record that was restored by an undo,
 * or added and removed within the series, has not changed.
 */
export class RecordChanges {
  readonly #watched = new Map<KindName, OfKind>()
  #count = 0
  #isReplaced = false

  /**
   * @param kinds of tables. More kinds can be added later; none is removed, because a kind costs
   * only a map of a few records.
   */
  constructor(kinds: readonly KindName[] = []) {
    for (const kind of kinds) this.watch(kind)
  }

  watch(kind: KindName): void {
    if (!this.#watched.has(kind)) this.#watched.set(kind, { kind, before: new Map() })
  }

  /** Notes one write; `before` is the previous record. */
  note(kind: KindName, id: string, before: EntityRecord | undefined): void {
    const known = this.#watched.get(kind)
    if (known === undefined || known.before.has(id)) return
    known.before.set(id, before)
    this.#count += 1
  }

  /** All records may have changed, so the noted changes are dropped. */
  noteReplaced(): void {
    this.clear()
    this.#isReplaced = true
  }

  /** Whether all records may have changed since the last call. */
  takeReplaced(): boolean {
    const isReplaced = this.#isReplaced
    this.#isReplaced = false
    return isReplaced
  }

  get isEmpty(): boolean {
    return this.#count === 0
  }

  /** Whether records of that kind were written, and none of another kind. */
  isOnlyOf(kind: KindName): boolean {
    return this.#count > 0 && this.#watched.get(kind)?.before.size === this.#count
  }

  /**
   * Returns and clears the changes of all kinds, kind by kind, in the order of the first write.
   * @param tables the current records.
   */
  take(tables: ReadonlyMap<KindName, Table>): readonly RecordChange[] {
    if (this.isEmpty) return []
    const changes: RecordChange[] = []
    for (const { kind, before: known } of this.#watched.values()) {
      if (known.size === 0) continue
      const rows = tables.get(kind)?.rows
      for (const [id, before] of known) {
        const after = rows?.get(id)?.record
        if (before !== after) changes.push({ kind, id, before, after })
      }
    }
    this.clear()
    return changes
  }

  clear(): void {
    this.#count = 0
    // A new map, because a cleared one keeps its table with the old contents until it is collected;
    // the cost is the same.
    for (const known of this.#watched.values()) if (known.before.size > 0) known.before = new Map()
  }
}
