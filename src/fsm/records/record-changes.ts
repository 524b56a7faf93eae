import type { KindName } from '../../entities/kind-records.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { RecordChange } from '../../ports/change-feed.ts'
import type { Table } from './table.ts'

/** Changes to the records of one kind. */
interface OfKind {
  readonly kind: KindName
  /** The records before the changes, by id; undefined for a record that did not exist. */
  before: Map<string, EntityRecord | undefined>
}

/**
 * Net changes over a series of writes, for the followed kinds. A record does not count as changed
 * if an undo restored it, or if it was added and removed within the series.
 */
export class RecordChanges {
  readonly #watched = new Map<KindName, OfKind>()
  #count = 0
  #isReplaced = false

  /**
   * @param kinds kinds that own a table. More kinds can be added later; kinds are never removed,
   * because each costs only a map of a few records.
   */
  constructor(kinds: readonly KindName[] = []) {
    for (const kind of kinds) this.watch(kind)
  }

  watch(kind: KindName): void {
    if (!this.#watched.has(kind)) this.#watched.set(kind, { kind, before: new Map() })
  }

  /** Records one write; `before` is the previous record. */
  note(kind: KindName, id: string, before: EntityRecord | undefined): void {
    const known = this.#watched.get(kind)
    if (known === undefined || known.before.has(id)) return
    known.before.set(id, before)
    this.#count += 1
  }

  /** Records that all records may have changed, and drops the individual changes. */
  noteReplaced(): void {
    this.clear()
    this.#isReplaced = true
  }

  /** Whether all records may have changed since the last call; clears this flag. */
  takeReplaced(): boolean {
    const isReplaced = this.#isReplaced
    this.#isReplaced = false
    return isReplaced
  }

  get isEmpty(): boolean {
    return this.#count === 0
  }

  /** Whether all recorded changes are to records of this kind. */
  isOnlyOf(kind: KindName): boolean {
    return this.#count > 0 && this.#watched.get(kind)?.before.size === this.#count
  }

  /**
   * Returns and clears the changes, kind by kind, in the order of the first write to each record.
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
    // The map is replaced and not cleared: a cleared map keeps its hash table with the old contents
    // in memory until it is collected, and a new map costs the same.
    for (const known of this.#watched.values()) if (known.before.size > 0) known.before = new Map()
  }
}
