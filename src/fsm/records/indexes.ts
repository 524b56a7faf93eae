import { jsonMapBytes } from '../../entities/check-fields.ts'
import type { Entity } from '../../entities/define-entity.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { sortTexts } from '../../lib/text/text-order.ts'
import { LayeredMap } from './layered-map.ts'
import { SortedIds, emptyIds } from './sorted-ids.ts'

/**
 * Values by which an index finds a record: the elements of a list, the keys of a map, or otherwise
 * the value as text.
 */
export function indexedElements(value: Json | undefined): readonly string[] {
  if (value === null || value === undefined || value === '') return []
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object') return [String(value)]
  return Array.isArray(value) ? (value as readonly string[]) : Object.keys(value)
}

/** One index entry: a value of a field, and the id of a record with that value. */
interface IndexEntry {
  readonly field: string
  readonly element: string
  readonly id: string
  readonly isUnique: boolean
}

const textKinds: ReadonlySet<string> = new Set(['text', 'choice', 'reference'])

/**
 * Fields that a filter may use and that have a single text value. The index keeps their values
 * sorted for range queries.
 */
function rangedFields(entity: Entity<string>): ReadonlySet<string> {
  const ranged = new Set<string>()
  for (const { path, through } of entity.symbols) {
    const [field] = path
    if (field === undefined || path.length > 1 || through !== null) continue
    const kind = entity.fields[field]?.kind
    if (kind !== undefined && textKinds.has(kind)) ranged.add(field)
  }
  return ranged
}

/**
 * Indexes for one kind of record, as its descriptor declares: unique values, ids by element, and
 * the sorted values of those indexed text fields that filters may use. The sorted values take about
 * 12 bytes per distinct value (including unused space in chunks).
 */
export class Indexes {
  readonly #unique = new Map<string, Map<string, string>>()
  readonly #postings = new Map<string, Map<string, SortedIds>>()
  readonly #ordered = new Map<string, SortedIds>()
  readonly #weighed: Entity['weighed']
  /**
   * For each owner of records: total bytes of the map field whose size is limited per owner
   * (`weighed`), over all records of the owner.
   */
  readonly #weights: Map<string, number>
  /**
   * Sets that this layer has changed, and therefore owns; null: there is no layer below, so this
   * layer owns all sets.
   */
  readonly #own: Set<SortedIds> | null

  /** @param below indexes of the layer below; this layer never changes them. */
  constructor(entity: Entity<string>, below: Indexes | null = null) {
    this.#weighed = entity.weighed
    this.#weights = below === null ? new Map() : new LayeredMap(below.#weights)
    this.#own = below === null ? null : new Set()
    if (below !== null) {
      for (const [name, owners] of below.#unique) this.#unique.set(name, new LayeredMap(owners))
      for (const [name, ids] of below.#postings) this.#postings.set(name, new LayeredMap(ids))
      for (const [name, values] of below.#ordered) this.#ordered.set(name, values)
      return
    }
    for (const [name, field] of Object.entries(entity.fields)) {
      if (field.unique !== null) this.#unique.set(name, new Map())
    }
    for (const name of entity.indexes) this.#postings.set(name, new Map())
    for (const name of rangedFields(entity)) {
      if (this.isUnique(name) || this.isIndexed(name)) this.#ordered.set(name, new SortedIds())
    }
  }

  isUnique(field: string): boolean {
    return this.#unique.has(field)
  }

  isIndexed(field: string): boolean {
    return this.#postings.has(field)
  }

  /** Id of the record with this value in a unique field. */
  owner(field: string, value: string): string | undefined {
    return this.#unique.get(field)?.get(value)
  }

  /** Sorted ids of the records with this element in an indexed field. Must not be modified. */
  ids(field: string, element: string): SortedIds {
    return this.#postings.get(field)?.get(element) ?? emptyIds
  }

  /**
   * Total bytes of the map field whose size is limited per owner (`weighed`), over all records of
   * the owner.
   */
  weight(ownerId: string): number {
    return this.#weights.get(ownerId) ?? 0
  }

  #weigh(record: EntityRecord | undefined, sign: 1 | -1): void {
    if (this.#weighed === null || record === undefined) return
    const bytes = jsonMapBytes(record[this.#weighed.field])
    const ownerId = record[this.#weighed.by]
    if (bytes === 0 || typeof ownerId !== 'string') return
    const sum = this.weight(ownerId) + sign * bytes
    if (sum === 0) this.#weights.delete(ownerId)
    else this.#weights.set(ownerId, sum)
  }

  /** The distinct elements of an indexed field, in any order. */
  elements(field: string): Iterable<string> {
    return this.#postings.get(field)?.keys() ?? []
  }

  /**
   * The distinct values of a text field in byte order, without the empty string; null if the index
   * does not sort them. Read-only.
   */
  values(field: string): SortedIds | null {
    return this.#ordered.get(field) ?? null
  }

  /** The fields whose index should contain the record but does not. */
  lacking(id: string, record: EntityRecord): string[] {
    const lacking = new Set<string>()
    for (const [field, owners] of this.#unique) {
      const value = record[field]
      if (typeof value === 'string' && value !== '' && owners.get(value) !== id) lacking.add(field)
    }
    for (const [field, postings] of this.#postings) {
      const isFound = indexedElements(record[field]).every((element) =>
        postings.get(element)?.has(id),
      )
      if (!isFound) lacking.add(field)
    }
    return [...lacking]
  }

  /**
   * All index entries. An entry that is added or removed during the iteration may or may not
   * appear.
   */
  *entries(): Generator<IndexEntry> {
    for (const [field, owners] of this.#unique) {
      for (const [element, id] of owners) yield { field, element, id, isUnique: true }
    }
    for (const [field, postings] of this.#postings) {
      for (const [element, ids] of postings) {
        for (const id of Array.from(ids)) yield { field, element, id, isUnique: false }
      }
    }
  }

  /** Whether an index entry leads to a record that does not have the value of the entry. */
  isStray({ field, element, id, isUnique }: IndexEntry, record: EntityRecord | undefined): boolean {
    const isHeld = isUnique ? this.owner(field, element) === id : this.ids(field, element).has(id)
    return isHeld && !indexedElements(record?.[field]).includes(element)
  }

  /**
   * Updates the indexes after a write. `before` is undefined for an added record, `after` for a
   * removed one.
   */
  move(id: string, before: EntityRecord | undefined, after: EntityRecord | undefined): void {
    this.#weigh(before, -1)
    this.#weigh(after, 1)
    for (const [field, owners] of this.#unique) {
      const old = before?.[field]
      const value = after?.[field]
      if (old === value) continue
      const ordered =
        this.#own === null
          ? this.#ordered.get(field)
          : this.#writable(this.#own, this.#ordered, field)
      if (typeof old === 'string' && old !== '') {
        owners.delete(old)
        ordered?.delete(old)
      }
      if (typeof value === 'string' && value !== '') {
        owners.set(value, id)
        ordered?.add(value)
      }
    }
    for (const [field, postings] of this.#postings) {
      const old = before?.[field]
      const value = after?.[field]
      if (old === value) continue
      this.#movePostings(field, postings, id, indexedElements(old), indexedElements(value))
    }
  }

  /** Adds one of many records. The values become sorted only when `loaded` is called. */
  load(id: string, record: EntityRecord): void {
    this.#weigh(record, 1)
    for (const [field, owners] of this.#unique) {
      const value = record[field]
      if (typeof value === 'string' && value !== '') owners.set(value, id)
    }
    for (const [field, postings] of this.#postings) {
      for (const element of indexedElements(record[field])) {
        const held = postings.get(element)
        if (held === undefined) postings.set(element, SortedIds.of([id]))
        else held.add(id)
      }
    }
  }

  /**
   * Sorts all values in one pass: inserting them one by one took a quarter of the time to load a
   * state.
   */
  loaded(): void {
    for (const field of this.#ordered.keys()) {
      const values = this.#unique.get(field) ?? this.#postings.get(field)
      this.#ordered.set(field, SortedIds.of(sortTexts([...(values?.keys() ?? [])])))
    }
  }

  /**
   * The set with this key, which the caller may change. A set that belongs to the layer below is
   * copied first.
   */
  #writable(own: Set<SortedIds>, sets: Map<string, SortedIds>, key: string): SortedIds | undefined {
    const ids = sets.get(key)
    if (ids === undefined || own.has(ids)) return ids
    const copy = ids.copy()
    own.add(copy)
    sets.set(key, copy)
    return copy
  }

  #movePostings(
    field: string,
    postings: Map<string, SortedIds>,
    id: string,
    before: readonly string[],
    after: readonly string[],
  ): void {
    const own = this.#own
    const ordered =
      own === null ? this.#ordered.get(field) : this.#writable(own, this.#ordered, field)
    for (const element of before) {
      const ids = own === null ? postings.get(element) : this.#writable(own, postings, element)
      if (ids === undefined) continue
      ids.delete(id)
      if (ids.size > 0) continue
      postings.delete(element)
      ordered?.delete(element)
    }
    for (const element of after) {
      const ids = own === null ? postings.get(element) : this.#writable(own, postings, element)
      if (ids !== undefined) {
        ids.add(id)
        continue
      }
      const first = SortedIds.of([id])
      own?.add(first)
      postings.set(element, first)
      ordered?.add(element)
    }
  }
}
