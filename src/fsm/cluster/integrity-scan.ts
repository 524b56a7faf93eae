import type { Entity } from '../../entities/define-entity.ts'
import type { Field } from '../../entities/fields.ts'
import { entities, entitiesByName } from '../../entities/registry.ts'
import type { KindName } from '../../entities/kind-records.ts'
import { requirePresent } from '../../lib/assert.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { integrityLimits } from './integrity.ts'
import { digestLanes } from '../records/digest.ts'
import { indexedElements } from '../records/indexes.ts'
import { recordKey, type Table } from '../records/table.ts'
import type { State } from '../records/state.ts'

/** Maximum records, or index entries, that one step checks. */
const STEP_ITEMS = 64

/** The repair of a fault, made with log entries that every controller applies. */
export type IntegrityRepair =
  /** Rebuilds the indexes and digests of a table from its records. */
  | { readonly kind: 'rebuild'; readonly entity: KindName }
  /** Removes a dangling reference from the record that contains it. */
  | {
      readonly kind: 'detach'
      readonly entity: KindName
      readonly id: string
      readonly field: string
      readonly missingId: string
    }

/** A fault in an index, a digest or a reference, with its repair. */
export interface IntegrityFinding {
  readonly description: string
  readonly repair: IntegrityRepair
}

/**
 * Checks every index, reference and digest of a state against its records, in small steps while the
 * state keeps changing. Each record and each index entry is checked within one step, so changes
 * between steps are not reported as faults.
 */
export class IntegrityScan {
  /** Findings in the order in which they were found, up to the maximum number that is stored. */
  readonly findings: IntegrityFinding[] = []
  /** True if there are more findings than `findings` contains. */
  hasMore = false
  readonly #state: State
  readonly #items: Iterator<void>

  constructor(state: State) {
    this.#state = state
    this.#items = this.#walk()
  }

  /**
   * Checks a limited number of records and index entries.
   * @returns false when everything was checked.
   */
  step(): boolean {
    for (let items = 0; items < STEP_ITEMS; items += 1) {
      if (this.#items.next().done === true) return false
    }
    return true
  }

  *#walk(): Generator<void> {
    for (const entity of entities) {
      if (entity.table !== entity.name) continue
      const table = this.#state.table(entity.name)
      yield* this.#records(table)
      yield* this.#entries(table)
    }
    yield
    if (!this.#state.isDigestRight('entities')) this.#noteDigest('entities', 'that clients see')
    yield
    if (!this.#state.isDigestRight('state')) this.#noteDigest('state', 'that clients do not see')
  }

  *#records(table: Table): Generator<void> {
    const { entity } = table
    // The loop uses a copy of the ids, so that it skips records that are added later; such records
    // are not corrupt.
    for (const id of Array.from(table.rows.keys())) {
      const row = table.rows.get(id)
      if (row !== undefined) {
        this.#judgeRow(table, id, row.record)
        for (const missing of missingOf(this.#state, entity, row.record)) {
          this.#note(missing.description, {
            kind: 'detach',
            entity: entity.name,
            id,
            ...missing.at,
          })
        }
      }
      yield
    }
  }

  #judgeRow(table: Table, id: string, record: EntityRecord): void {
    const { entity, ids, indexes } = table
    const rebuild = { kind: 'rebuild', entity: entity.name } as const
    const what = `${entity.name} ${id}`
    if (!ids.has(id)) this.#note(`${what} is not in the order of its table`, rebuild)
    for (const field of indexes.lacking(id, record)) {
      this.#note(`${what} is not found by its ${field}`, rebuild)
    }
    const lanes = digestLanes(recordKey(entity.name, id), table.stored(record))
    const kept = table.rows.get(id)?.lanes
    const isSame =
      kept?.a === lanes.a && kept.b === lanes.b && kept.c === lanes.c && kept.d === lanes.d
    if (!isSame) this.#note(`the digest of ${what} is not that of its content`, rebuild)
  }

  *#entries(table: Table): Generator<void> {
    const { entity } = table
    const rebuild = { kind: 'rebuild', entity: entity.name } as const
    for (const id of Array.from(table.ids)) {
      if (table.ids.has(id) && !table.rows.has(id)) {
        this.#note(`the order of ${entity.plural} names ${id}, which does not exist`, rebuild)
      }
      yield
    }
    for (const entry of table.indexes.entries()) {
      const { field, element, id } = entry
      if (table.indexes.isStray(entry, table.get(id))) {
        const shown = element.slice(0, integrityLimits.elementCharactersMax)
        const reason = `the index of ${entity.plural} by ${field} leads from '${shown}' to ${id}, which is not so`
        this.#note(reason, rebuild)
      }
      yield
    }
  }

  #noteDigest(digest: Entity['digest'], which: string): void {
    const { name: entity } = requirePresent(
      entities.find((one) => one.digest === digest),
      `there are kinds in the digest of ${digest}`,
    )
    this.#note(`the digest of the records ${which} is not their sum`, { kind: 'rebuild', entity })
  }

  #note(description: string, repair: IntegrityRepair): void {
    if (this.findings.length >= integrityLimits.findingsMax) {
      this.hasMore = true
      return
    }
    this.findings.push({
      description: description.slice(0, integrityLimits.descriptionCharactersMax),
      repair,
    })
  }
}

interface Missing {
  readonly description: string
  readonly at: { readonly field: string; readonly missingId: string }
}

/** The references in a record to missing records. */
function missingOf(state: State, entity: Entity, record: EntityRecord): Missing[] {
  const missing: Missing[] = []
  for (const name of entity.indexes) {
    const field = entity.fields[name]
    const to = field?.reference?.to
    if (field === undefined || to === undefined || !entitiesByName.has(to)) continue
    for (const missingId of referredBy(field, record[name])) {
      if (state.inTable(to, missingId) !== undefined) continue
      const description = `${entity.name} ${record.id} names the ${to} ${missingId} in ${name}, which does not exist`
      missing.push({ description, at: { field: name, missingId } })
    }
  }
  return missing
}

/** The ids that a reference contains. */
function referredBy(field: Field, value: EntityRecord[string] | undefined): readonly string[] {
  const elements = indexedElements(value)
  if (field.kind !== 'roleList') return elements
  return elements.filter((role) => role.startsWith('@')).map((role) => role.slice(1))
}
