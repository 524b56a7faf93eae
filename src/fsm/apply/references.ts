import type { Entity } from '../../entities/define-entity.ts'
import type { Field } from '../../entities/fields.ts'
import {
  referenceIndexKey,
  type ReferencingField,
  findReferencingFields,
} from '../../entities/referencing-fields.ts'
import { findEntity, kindPlural } from '../../entities/registry.ts'
import type { KindName } from '../../entities/kind-records.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { indexedElements } from '../records/indexes.ts'
import type { State } from '../records/state.ts'
import type { CommandContext, WriteConsequences } from './command-context.ts'
import { acceptedOutcome, fieldFaultOutcome, notFoundOutcome, refusedOutcome } from './outcome.ts'

/** Maximum number of ids that the message of a refusal lists. */
const shownIdsMax = 20

function roleFault(
  state: State,
  name: string,
  to: KindName,
  roles: readonly string[],
): Outcome | null {
  const unknown: string[] = []
  for (const role of roles) {
    if (!role.startsWith('@')) continue
    const id = role.slice(1)
    if (state.get(to, id) === undefined) unknown.push(id)
  }
  if (unknown.length === 0) return null
  const reason = `no ${kindPlural(to)} found with the given ids`
  return fieldFaultOutcome({ field: name, reason, value: unknown.slice(0, shownIdsMax) })
}

/**
 * The refusal for the first of the given fields that references a missing record; null when there
 * is none.
 */
export function missingReferenceRefusal(
  state: State,
  entity: Entity,
  fields: JsonObject,
): Outcome | null {
  for (const name of entity.indexes) {
    const reference = entity.fields[name]?.reference
    const value = fields[name]
    if (reference === null || reference === undefined || value === undefined) continue
    if (reference.isJudgedByRules === true) continue
    if (entity.fields[name]?.kind === 'roleList') {
      const fault = roleFault(state, name, reference.to, value as readonly string[])
      if (fault !== null) return fault
      continue
    }
    for (const id of indexedElements(value)) {
      if (state.get(reference.to, id) === undefined) return notFoundOutcome(reference.to, id)
    }
  }
  return null
}

function holders(state: State, referrer: ReferencingField, id: string): string[] {
  const element = referenceIndexKey(referrer, id)
  return [...state.table(referrer.entity.name).indexes.ids(referrer.name, element)]
}

/**
 * Reason why the record cannot be deleted while other records reference it; null when it can be
 * deleted.
 */
export function blockingReferenceRefusal(state: State, entity: Entity, id: string): Outcome | null {
  for (const referrer of findReferencingFields(entity)) {
    if (state.featureLevel < referrer.refusedFrom) continue
    const ids = holders(state, referrer, id)
    if (ids.length === 0) continue
    const shown = ids.slice(0, shownIdsMax)
    const reason = `entity type ${entity.plural} referenced by ${referrer.entity.plural}: [${shown.join(' ')}]`
    const field = referrer.field.faultField ?? referrer.name
    const fault = { field, reason, value: shown }
    return fieldFaultOutcome(fault, 'CAN_NOT_DELETE_REFERENCED_ENTITY')
  }
  return null
}

function without(field: Field, value: Json | undefined, id: string): Json {
  if (field.kind === 'reference') return field.zero
  if (field.kind === 'map') {
    return Object.fromEntries(Object.entries(value as JsonObject).filter(([key]) => key !== id))
  }
  const gone = field.kind === 'roleList' ? `@${id}` : id
  return (value as readonly string[]).filter((element) => element !== gone)
}

function strip(
  state: State,
  referrer: ReferencingField,
  holderId: string,
  id: string,
  index: number,
): void {
  const holder = state.inTable(referrer.entity.name, holderId)
  if (holder === undefined) return
  const value = without(referrer.field, holder[referrer.name], id)
  state.put(referrer.entity.name, { ...holder, [referrer.name]: value, revision: index })
}

/**
 * Removes a record. Removes its id from the fields that reference it with the effect `strip`, and
 * the records that reference it with the effect `cascade`. The caller must already have checked the
 * references that forbid the deletion (`blockingReferenceRefusal`).
 */
export function removeWithReferences(
  state: State,
  entity: Entity,
  record: EntityRecord,
  context: CommandContext,
): void {
  for (const referrer of findReferencingFields(entity)) {
    for (const holderId of holders(state, referrer, record.id)) {
      if (referrer.onDelete === 'strip') strip(state, referrer, holderId, record.id, context.index)
      if (referrer.onDelete !== 'cascade') continue
      const holder = state.inTable(referrer.entity.name, holderId)
      if (holder !== undefined) removeWithReferences(state, referrer.entity, holder, context)
    }
  }
  // The record may have been removed already, together with another record on which it depends.
  if (state.inTable(entity.name, record.id) === undefined) return
  state.remove(entity.name, record.id)
  context.rulesOf(entity.table).afterDelete?.(record, createWriteConsequences(state, context))
}

/** Creates the operations that the rules of a kind may call after a write. */
export function createWriteConsequences(state: State, context: CommandContext): WriteConsequences {
  const { logTimeMs, index } = context
  return {
    state,
    context,
    put(kind, id, fields) {
      const createdAt = state.get(kind, id)?.createdAt ?? logTimeMs
      state.put(kind, { ...fields, id, createdAt, updatedAt: logTimeMs, revision: index })
    },
    remove(kind, id) {
      const record = state.get(kind, id)
      if (record !== undefined) removeWithReferences(state, findEntity(kind), record, context)
    },
  }
}

/** A record with a reference to a missing record. */
interface Dangling {
  readonly entity: Entity
  readonly record: EntityRecord
  readonly name: string
  readonly missingId: string
}

/**
 * Removes a dangling reference from a record, or the record itself if the reference has the effect
 * `cascade`. Refused if a required reference would become empty, or if its default does not exist.
 */
export function detachReference(
  state: State,
  { entity, record, name, missingId }: Dangling,
  context: CommandContext,
): Outcome {
  const field = entity.fields[name]
  const reference = field?.reference
  if (field === undefined || reference === null || reference === undefined) {
    return refusedOutcome('UNHANDLED', `${name} is no reference`)
  }
  if (reference.onDelete === 'cascade') {
    removeWithReferences(state, entity, record, context)
    return acceptedOutcome(record.id)
  }
  const value = without(field, record[name], missingId)
  const isLost =
    field.kind === 'reference' &&
    (value === '' || value === null
      ? field.isRequired
      : state.inTable(reference.to, String(value)) === undefined)
  if (isLost) return refusedOutcome('UNHANDLED', `${name} can name nothing else`)
  state.put(entity.name, { ...record, [name]: value, revision: context.index })
  return acceptedOutcome(record.id)
}
