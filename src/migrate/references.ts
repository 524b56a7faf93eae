import { entities } from '../entities/registry.ts'
import type { Entity } from '../entities/define-entity.ts'
import type { Field } from '../entities/fields.ts'
import type { KindName } from '../entities/kind-records.ts'
import type { State } from '../fsm/records/state.ts'
import type { EntityRecord } from '../lib/entity-record.ts'
import type { Json } from '../lib/text/canonical-json.ts'
import type { MigrationReport } from './report.ts'

/**
 * Maximum passes over the records. A removed record may make others invalid; no chain of such
 * removals is this long.
 */
const ROUNDS_MAX = 8

interface SweepDeps {
  readonly state: State
  readonly report: MigrationReport
  /**
   * OpenZiti store that contains the records of a kind; null if OpenZiti stores them as a field of
   * other records.
   */
  readonly storeOf: (kind: KindName) => string | null
}

/**
 * Removes references to records that do not exist, and records that cannot exist without such a
 * reference.
 */
export function removeDanglingReferences(deps: SweepDeps): void {
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    if (!sweep(deps)) return
  }
}

/** @returns whether at least one record was removed. */
function sweep({ state, report, storeOf }: SweepDeps): boolean {
  let hasRemoved = false
  for (const entity of entities) {
    if (entity.table !== entity.name) continue
    const { name } = entity
    const fields = referenceFields(entity)
    if (fields.length === 0) continue
    for (const { record } of Array.from(state.table(name).rows.values())) {
      const swept = sweptRecord(state, fields, record)
      if (swept === null) continue
      for (const { field, id } of swept.missing) {
        const isLost = swept.record === null
        const store = storeOf(name)
        const place =
          store === null ? placeOfField(name, record.id) : { store, id: record.id, field }
        const end = isLost ? ', without which the record is nothing' : ''
        report.note(isLost ? 'lost' : 'changed', place, `${id} does not exist${end}`)
      }
      if (swept.record === null) {
        state.remove(name, record.id)
        const store = storeOf(name)
        if (store !== null) report.countCarried(store, -1)
        hasRemoved = true
      } else state.put(name, swept.record)
    }
  }
  return hasRemoved
}

/**
 * Store and id under which a finding is reported if OpenZiti stores the record as a field of an
 * identity; the id of such a record begins with the identity's id.
 */
function placeOfField(kind: KindName, id: string) {
  const [identityId = ''] = id.split(':')
  return { store: 'identities', id: identityId, field: `${kind}s` }
}

type NamedField = readonly [name: string, field: Field, to: KindName]

function referenceFields(entity: Entity): NamedField[] {
  return Object.entries(entity.fields).flatMap(([name, field]) => {
    const to = field.reference?.to
    return to === undefined ? [] : [[name, field, to] as const]
  })
}

interface SweptRecord {
  /**
   * The record without the dangling references; null if it cannot exist without the missing record.
   */
  readonly record: EntityRecord | null
  readonly missing: readonly { readonly field: string; readonly id: string }[]
}

/** Removes dangling references from a record; null if no referenced record is missing. */
function sweptRecord(
  state: State,
  fields: readonly NamedField[],
  record: EntityRecord,
): SweptRecord | null {
  const missing: { field: string; id: string }[] = []
  const changed: Record<string, Json> = {}
  let isNothing = false
  for (const [name, field, to] of fields) {
    const value = record[name] ?? null
    const isMissing = (id: string): boolean => id !== '' && state.inTable(to, id) === undefined
    const found = idsIn(field, value).filter(isMissing)
    if (found.length === 0) continue
    missing.push(...found.map((id) => ({ field: name, id })))
    const kept = withoutIds(field, value, new Set(found))
    if (kept === null) isNothing = true
    else changed[name] = kept
  }
  if (missing.length === 0) return null
  return { record: isNothing ? null : { ...record, ...changed }, missing }
}

function idsIn(field: Field, value: Json): readonly string[] {
  if (typeof value === 'string') return [value]
  if (Array.isArray(value)) {
    const texts = (value as readonly Json[]).filter((one) => typeof one === 'string')
    if (field.kind !== 'roleList') return texts
    return texts.filter((one) => one.startsWith('@')).map((one) => one.slice(1))
  }
  return value !== null && typeof value === 'object' ? Object.keys(value) : []
}

/** Removes these ids from a value; null if the record cannot exist without them. */
function withoutIds(field: Field, value: Json, ids: ReadonlySet<string>): Json {
  if (typeof value === 'string') {
    // A single reference can be replaced only if the zero value of the field names a record, such
    // as `default`.
    return field.zero === '' ? null : field.zero
  }
  const idOf = (text: string): string => (field.kind === 'roleList' ? text.slice(1) : text)
  if (Array.isArray(value)) {
    const isKept = (one: Json): boolean =>
      typeof one !== 'string' ||
      (field.kind === 'roleList' && !one.startsWith('@')) ||
      !ids.has(idOf(one))
    return (value as readonly Json[]).filter(isKept)
  }
  return Object.fromEntries(Object.entries(value ?? {}).filter(([id]) => !ids.has(id)))
}
