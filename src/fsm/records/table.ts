import type { Entity } from '../../entities/define-entity.ts'
import type { KindName } from '../../entities/kind-records.ts'
import { isSameJson, type Json } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { type DigestLanes, digestLanes } from './digest.ts'
import { Indexes } from './indexes.ts'
import { LayeredMap } from './layered-map.ts'
import { SortedIds } from './sorted-ids.ts'

/** A record with the digest of its stored text. */
export interface TableRow<R extends EntityRecord = EntityRecord> {
  readonly record: R
  readonly lanes: DigestLanes
}

interface Member {
  readonly name: string
  readonly zero: Json
  readonly since: number
}

/** The records of one kind with their indexes. Only `State` modifies the tables of a state. */
export class Table<R extends EntityRecord = EntityRecord, N extends string = KindName> {
  readonly entity: Entity<N>
  ids: SortedIds
  indexes: Indexes
  readonly rows: Map<string, TableRow<R>>
  /** Number that changes with each write. */
  version = 0
  /**
   * Number that changes when a record is added, removed, or gets other role attributes, because
   * role lists may then select other records.
   */
  matchVersion = 0
  /** The stored members of a record, in the order that all records have. */
  readonly #members: readonly Member[]
  /** A record in which every member has its zero value. */
  readonly #zeros: Readonly<Record<string, Json>>
  /** The feature level that introduced a member, by name of the member. */
  readonly #since: ReadonlyMap<string, number>
  /** True if `ids` belongs to the table below, so that it must be copied before a change. */
  #sharesIds: boolean

  /** @param below the table of the layer below; this layer never changes it. */
  constructor(entity: Entity<N>, below: Table<R, N> | null = null) {
    this.entity = entity
    this.indexes = new Indexes(entity, below?.indexes ?? null)
    this.rows = below === null ? new Map() : new LayeredMap(below.rows)
    this.ids = below === null ? new SortedIds() : below.ids
    this.#sharesIds = below !== null
    const stored = Object.keys(entity.fields).filter(
      (name) => entity.fields[name]?.computed === null,
    )
    this.#members = [...stored, 'createdAt', 'id', 'revision', 'updatedAt'].sort().map((name) => {
      const { zero = null, since = 1 } = entity.fields[name] ?? {}
      return { name, zero, since }
    })
    this.#zeros = Object.fromEntries(this.#members.map(({ name, zero }) => [name, zero]))
    this.#since = new Map(this.#members.map(({ name, since }) => [name, since]))
  }

  get(id: string): R | undefined {
    return this.rows.get(id)?.record
  }

  /** Adds one of many records; `loaded` must be called after the last one. */
  load(row: TableRow<R>): void {
    const { id } = row.record
    this.rows.set(id, row)
    this.ids.add(id)
    this.indexes.load(id, row.record)
  }

  /** Recomputes all data that is derived from the records. */
  rebuild(): void {
    this.ids = new SortedIds()
    this.#sharesIds = false
    this.indexes = new Indexes(this.entity)
    for (const [id, { record }] of this.rows) {
      const lanes = digestLanes(recordKey(this.entity.name, id), this.stored(record))
      this.load({ record, lanes })
    }
    this.loaded()
  }

  loaded(): void {
    this.indexes.loaded()
    this.version += 1
    this.matchVersion += 1
  }

  /**
   * Converts values to a record with exactly the fields of the table. All records have the same
   * order of members, so that equal records have equal JSON. Omitted fields, and fields of a later
   * feature level, get their zero value.
   */
  shape(values: Readonly<Record<string, Json>>, level: number): R {
    // Copying all zero values and then setting a few members takes much less time than setting
    // twenty members one by one.
    const record: Record<string, Json> = { ...this.#zeros }
    for (const name of Object.keys(values)) {
      const since = this.#since.get(name)
      if (since !== undefined && since <= level) record[name] = values[name] ?? record[name] ?? null
    }
    return record as EntityRecord as R
  }

  /**
   * The text of a record that is stored and hashed. It omits members with their zero value. A
   * version with an additional field that no write has set therefore stores the same bytes as a
   * version without this field.
   */
  stored(record: R): string {
    const kept: Record<string, Json> = {}
    for (const { name, zero } of this.#members) {
      const value = record[name] ?? null
      if (value !== zero && !isSameJson(value, zero)) kept[name] = value
    }
    return JSON.stringify(kept)
  }

  change(id: string, row: TableRow<R> | undefined): TableRow<R> | undefined {
    const before = this.rows.get(id)
    if (this.#sharesIds && (row === undefined || before === undefined)) {
      this.ids = this.ids.copy()
      this.#sharesIds = false
    }
    if (row === undefined) {
      this.rows.delete(id)
      this.ids.delete(id)
    } else {
      this.rows.set(id, row)
      if (before === undefined) this.ids.add(id)
    }
    this.indexes.move(id, before?.record, row?.record)
    this.version += 1
    if (before?.record['roleAttributes'] !== row?.record['roleAttributes'] || !before || !row) {
      this.matchVersion += 1
    }
    return before
  }
}

/**
 * Read access to the records of a kind. A kind that is a view reads the records of its table under
 * the view's field names.
 */
export type Records<R extends EntityRecord = EntityRecord> = Pick<
  Table<R, string>,
  'entity' | 'ids' | 'indexes' | 'rows' | 'get'
>

/** The records of a table with the field names of a kind that is a view of the table. */
export function createViewRecords(entity: Entity, table: Table): Records {
  if (entity === table.entity) return table
  return {
    entity,
    rows: table.rows,
    get: (id) => table.get(id),
    get ids() {
      return table.ids
    },
    get indexes() {
      return table.indexes
    },
  }
}

/** Key of a record in the store and in the digests. */
export function recordKey(entity: string, id: string): string {
  return `e/${entity}/${id}`
}
