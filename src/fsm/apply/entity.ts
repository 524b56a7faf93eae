import { fromBinary } from '@bufbuild/protobuf'
import {
  CommandKind,
  EntityBatchSchema,
  EntityDeleteSchema,
  type EntityWrite,
  EntityWriteSchema,
} from '../../../proto/gen/command_pb.ts'
import { checkFields, isObject } from '../../entities/check-fields.ts'
import type { Entity } from '../../entities/define-entity.ts'
import { mergeMembers } from '../../entities/nested-schemas.ts'
import { findEntity } from '../../entities/registry.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { ProblemCode } from '../../lib/problems.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import type { Table } from '../records/table.ts'
import { changedFields, type AuditedWrite } from './audit.ts'
import { writeRefusal } from './actor-rights.ts'
import type { CommandContext, KindRules } from './command-context.ts'
import { acceptedOutcome, fieldFaultOutcome, notFoundOutcome, refusedOutcome } from './outcome.ts'
import { unprintableFieldsRefusal } from './printable-names.ts'
import {
  blockingReferenceRefusal,
  createWriteConsequences,
  missingReferenceRefusal,
  removeWithReferences,
} from './references.ts'

const idCharactersMax = 128
const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Parses the fields of a command.
 * @throws when the bytes are not a JSON object, so that the command cannot be decoded.
 */
export function parseFields(json: Uint8Array): JsonObject {
  const value = JSON.parse(utf8.decode(json)) as Json
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new TypeError('the fields of a command are a JSON object')
  }
  return value as JsonObject
}

/**
 * Removes read-only fields, unknown fields, and fields that cannot be written at the current
 * feature level. A proposer therefore cannot set a read-only field, or a field that some voter does
 * not know.
 */
function writable(
  entity: Entity,
  fields: JsonObject,
  { isCreate, level }: { readonly isCreate: boolean; readonly level: number },
): JsonObject {
  const kept: Record<string, Json> = {}
  for (const name of Object.keys(fields)) {
    const field = Object.hasOwn(entity.fields, name) ? entity.fields[name] : undefined
    const value = fields[name]
    if (field === undefined || value === undefined || field.writableSince > level) continue
    if (field.settable === 'never' || (field.settable === 'create' && !isCreate)) continue
    kept[name] = value
  }
  return kept
}

function uniqueFault(
  { indexes }: Table,
  entity: Entity,
  id: string,
  fields: JsonObject,
): Outcome | null {
  for (const name of Object.keys(fields)) {
    const reason = entity.fields[name]?.unique ?? null
    const value = fields[name]
    if (reason === null || typeof value !== 'string') continue
    const owner = indexes.owner(name, value)
    if (owner !== undefined && owner !== id) {
      const field = entity.fields[name]?.faultField ?? name
      return fieldFaultOutcome({ field, reason: reason.replace('{value}', () => value), value })
    }
  }
  return null
}

function fieldRefusal(
  state: State,
  table: Table,
  entity: Entity,
  id: string,
  fields: JsonObject,
): Outcome | null {
  const fault = checkFields(entity, fields)
  if (fault !== null) return fieldFaultOutcome(fault)
  return uniqueFault(table, entity, id, fields) ?? missingReferenceRefusal(state, entity, fields)
}

function guard(rules: Readonly<Record<string, ProblemCode>>, record: EntityRecord): Outcome | null {
  for (const [field, code] of Object.entries(rules)) {
    if (record[field] === true) return refusedOutcome(code)
  }
  return null
}

interface DecodedWrite {
  readonly entity: Entity
  readonly write: EntityWrite
  readonly fields: JsonObject
}

function decode(state: State, write: EntityWrite, isCreate: boolean): DecodedWrite {
  const entity = findEntity(write.entity)
  const at = { isCreate, level: state.featureLevel }
  return { entity, write, fields: writable(entity, parseFields(write.json), at) }
}

/**
 * The refusal for a missing required text field; null if none is missing. Without this check, the
 * zero value of the field would look like a given value.
 */
function requiredFault(entity: Entity, fields: JsonObject, isCreate: boolean): Outcome | null {
  for (const name in entity.fields) {
    const field = entity.fields[name]
    if (field?.isRequired !== true || field.settable === 'never' || name in fields) continue
    if (field.settable === 'create' && !isCreate) continue
    if (field.kind === 'text')
      return fieldFaultOutcome({ field: name, reason: `${name} is required` })
  }
  return null
}

/**
 * POST: creates a record with the given fields. All other fields get their zero value, except the
 * field that defines the scope of the kind.
 */
export function createEntity(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  return insert(state, fromBinary(EntityWriteSchema, payload), context)
}

function insert(state: State, message: EntityWrite, context: CommandContext): Outcome {
  const { entity, write, fields } = decode(state, message, true)
  const rules = context.rulesOf(entity.name)
  const { name: kind } = entity
  context.touched.push({ action: 'create', entity: kind, id: write.id, fields: [] })
  const denial = writeRefusal(state, { kind, mode: 'create', before: undefined, fields }, context)
  if (denial !== null) return denial
  if (write.id === '' || write.id.length > idCharactersMax) {
    return fieldFaultOutcome({ field: 'id', reason: 'id is not usable' })
  }
  const table = state.table(kind)
  if (table.rows.has(write.id)) {
    return fieldFaultOutcome({ field: 'id', reason: 'id must be unique', value: write.id })
  }
  // @guard names-at-a-terminal--create
  const refusal =
    requiredFault(entity, fields, true) ??
    fieldRefusal(state, table, entity, write.id, fields) ??
    unprintableFieldsRefusal(state, entity, undefined, fields) ??
    rules.judgeWrite?.(state, { id: write.id, before: undefined, after: fields }, context) ??
    null
  if (refusal !== null) return refusal
  const { index: revision, logTimeMs } = context
  const { scope } = entity
  state.put(entity.name, {
    ...fields,
    ...(scope === null ? {} : { [scope.field]: scope.value }),
    id: write.id,
    createdAt: logTimeMs,
    updatedAt: logTimeMs,
    revision,
  })
  const { afterWrite } = rules
  if (afterWrite !== undefined) follow(state, entity, write.id, undefined, afterWrite, context)
  return acceptedOutcome(write.id)
}

/** Applies the consequences that the rules of the kind define for a write. */
function follow(
  state: State,
  entity: Entity,
  id: string,
  before: EntityRecord | undefined,
  afterWrite: NonNullable<KindRules['afterWrite']>,
  context: CommandContext,
): void {
  const after = state.get(entity.name, id)
  if (after !== undefined) afterWrite({ before, after }, createWriteConsequences(state, context))
}

/** New values of the fields in a patch; mergeable fields are merged into the stored value. */
function changed(entity: Entity, record: EntityRecord, fields: JsonObject): JsonObject {
  const result: Record<string, Json> = {}
  for (const [name, value] of Object.entries(fields)) {
    const onto = entity.fields[name]?.mergedOnto ?? null
    const stored = record[name]
    result[name] =
      onto !== null && isObject(value)
        ? mergeMembers(isObject(stored) ? stored : onto, value)
        : value
  }
  return result
}

function update(
  state: State,
  decoded: DecodedWrite,
  context: CommandContext,
  isPatch: boolean,
): Outcome {
  const { entity, write, fields } = decoded
  const rules = context.rulesOf(entity.name)
  const mode = isPatch ? 'patch' : 'replace'
  const touched: AuditedWrite = {
    action: mode,
    entity: entity.name,
    id: write.id,
    fields: Object.keys(fields),
  }
  context.touched.push(touched)
  const record = state.get(entity.name, write.id)
  if (record === undefined) return notFoundOutcome(entity.name, write.id)
  const denial = writeRefusal(state, { kind: entity.name, mode, before: record, fields }, context)
  if (denial !== null) return denial
  const cleared: Record<string, Json> = {}
  for (const [name, field] of Object.entries(entity.fields)) {
    if (!isPatch && field.settable === 'always') cleared[name] = field.zero
  }
  const after = { ...record, ...cleared, ...(isPatch ? changed(entity, record, fields) : fields) }
  // @guard names-at-a-terminal--change
  const refusal =
    guard(entity.refuse.update, record) ??
    (isPatch ? null : requiredFault(entity, fields, false)) ??
    fieldRefusal(state, state.table(entity.name), entity, write.id, fields) ??
    unprintableFieldsRefusal(state, entity, record, fields) ??
    rules.judgeWrite?.(state, { id: write.id, before: record, after }, context) ??
    null
  if (refusal !== null) return refusal
  touched.fields = changedFields(record, after)
  const base = { id: record.id, updatedAt: context.logTimeMs, revision: context.index }
  state.put(entity.name, { ...after, ...base })
  const { afterWrite } = rules
  if (afterWrite !== undefined) follow(state, entity, record.id, record, afterWrite, context)
  return acceptedOutcome(record.id)
}

/**
 * PUT: sets every field that is always settable to the given value or to its zero value. A field
 * that the proposer sets stays unchanged if the command omits it; read-only fields, and fields that
 * are fixed at creation, always stay unchanged.
 */
export function replaceEntity(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  return update(state, decode(state, fromBinary(EntityWriteSchema, payload), false), context, false)
}

/**
 * PATCH: sets the given fields. The other fields keep the values that they have when the entry is
 * applied.
 */
export function patchEntity(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  return update(state, decode(state, fromBinary(EntityWriteSchema, payload), false), context, true)
}

/** Deletes a record, and applies the consequences for the records that reference it. */
export function deleteEntity(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  const { entity, id } = fromBinary(EntityDeleteSchema, payload)
  return remove(state, findEntity(entity), id, context)
}

function remove(state: State, entity: Entity, id: string, context: CommandContext): Outcome {
  context.touched.push({ action: 'delete', entity: entity.name, id, fields: [] })
  const record = state.get(entity.name, id)
  if (record === undefined) return notFoundOutcome(entity.name, id)
  const guarded = { kind: entity.name, mode: 'delete', before: record, fields: {} } as const
  const refusal =
    writeRefusal(state, guarded, context) ??
    guard(entity.refuse.delete, record) ??
    context.rulesOf(entity.name).judgeDelete?.(state, record, context) ??
    blockingReferenceRefusal(state, entity, record.id)
  if (refusal !== null) return refusal
  removeWithReferences(state, entity, record, context)
  return acceptedOutcome(record.id)
}

export const batchLimits = {
  /** Maximum steps in a batch. No operation needs more, and a longer batch would delay the log. */
  stepsMax: 64,
} as const

/**
 * Applies all steps in order, or none of them.
 * @throws if a step is not an entity write.
 */
export function writeBatch(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  const { steps, answer } = fromBinary(EntityBatchSchema, payload)
  if (steps.length > batchLimits.stepsMax) {
    return fieldFaultOutcome({
      field: 'steps',
      reason: `there are at most ${batchLimits.stepsMax} writes in one`,
    })
  }
  return state.transact(() => {
    for (const { kind, write } of steps) {
      if (write === undefined) throw new TypeError('a step of a batch says what it writes')
      const outcome = applyBatchStep(state, kind, write, context)
      if (!outcome.ok) return outcome
    }
    return acceptedOutcome(steps[answer]?.write?.id ?? '')
  })
}

/**
 * Applies one write of a record.
 * @throws on an unknown kind.
 */
export function applyBatchStep(
  state: State,
  kind: number,
  write: EntityWrite,
  context: CommandContext,
): Outcome {
  switch (kind as CommandKind) {
    case CommandKind.ENTITY_CREATE:
      return insert(state, write, context)
    case CommandKind.ENTITY_REPLACE:
      return update(state, decode(state, write, false), context, false)
    case CommandKind.ENTITY_PATCH:
      return update(state, decode(state, write, false), context, true)
    case CommandKind.ENTITY_DELETE:
      return remove(state, findEntity(write.entity), write.id, context)
    default:
      throw new Error(`a step of kind ${kind} is unknown here`)
  }
}
