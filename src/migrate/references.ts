import { entities } from '../entities/registry.ts'
import type { Entity } from '../entities/define.ts'
import type { Field } from '../entities/fields.ts'
import type { KindName } from '../entities/kind-records.ts'
import type { State } from '../fsm/records/state.ts'
import type { EntityRecord } from '../lib/entity-record.ts'
import type { Json } from '../lib/text/canonical-json.ts'
import type { MigrationReport } from './report.ts'

/** Rounds until no record refers to a removed one: the longest chain of references. */
const ROUNDS_MAX = 8

interface SweepDeps {
  readonly state: State
  readonly report: MigrationReport
  /** Store that the records of a kind come from; null: they are fields of records there. */
  readonly storeOf: (kind: KindName) => string | null
}

/** Removes references to records that do not exist, and records that cannot exist without them. */
export function removeDanglingReferences(deps: SweepDeps): void {
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    if (!sweep(deps)) return
  }
}

/** @returns whether it removed a record. */
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

/** Records that are a field of identities have the id of the identity first. */
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
  /** null: it cannot be without the missing record. */
  readonly record: EntityRecord | null
  readonly missing: readonly { readonly field: string; readonly id: string }[]
}

/** null: nothing is missing. */
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

/** The value without these ids; null if the record needs them. */
function withoutIds(field: Field, value: Json, ids: ReadonlySet<string>): Json {
  if (typeof value === 'string') {
    // Only a reference with a default stays without its record.
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
