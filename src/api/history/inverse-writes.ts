import { historyFields } from '../../entities/history-kinds.ts'
import type { KindName } from '../../entities/kind-names.ts'
import { entityOperations } from '../../entities/operations.ts'
import { entitiesByName, findEntity, isKindName } from '../../entities/registry.ts'
import { batchLimits } from '../../fsm/apply/entity.ts'
import { isObject } from '../../entities/check-fields.ts'
import { auditedRecordFields } from '../../fsm/apply/audited-change.ts'
import { parseAuditedChanges } from '../../fsm/audit-query.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { isSessionPermission, type SessionPermission } from '../../lib/permissions.ts'
import { Problem } from '../../lib/problems.ts'
import { isSameJson, type Json, type JsonObject } from '../../lib/text/canonical-json.ts'
import type { AuditedChange } from '../../ports/audit.ts'
import type { RecordChange } from '../../ports/change-feed.ts'
import type { StateView } from '../../ports/state-view.ts'
import { rfc3339Text } from '../http/responses/envelope.ts'
import { recordedChangeState } from './audit-rows.ts'

/** A write that undoes one change of an entry. */
export interface InverseWrite {
  readonly action: 'create' | 'patch' | 'delete'
  readonly kind: KindName
  readonly id: string
  readonly name: string
  /** Body of the request for the write; {} for a deletion. */
  readonly data: JsonObject
  /** Permission that the write's operation requires. */
  readonly permission: SessionPermission
  /** Stored fields that the record must have after the write; null for a deletion. */
  readonly restored: JsonObject | null
}

type Records = Pick<StateView, 'get'>

/** Actions that an undo supports. An undo writes the previous values of the changed records. */
const undoable: ReadonlySet<string> = new Set(['create', 'replace', 'patch', 'delete'])

/**
 * For each kind, the stored fields that have another name in request bodies, each with that name.
 */
const memberNames: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  identity: { typeId: 'type' },
  terminator: { serviceId: 'service', routerId: 'router', instanceId: 'identity' },
}

/** A change that an undo reverts, and the write that reverts it, without the current values. */
export interface PlannedWrite {
  readonly action: InverseWrite['action']
  readonly kind: KindName
  readonly change: AuditedChange
  readonly permission: SessionPermission
}

/**
 * The writes that an undo of the entry takes, beginning with the write to the entry's main record.
 * Reads no record but the entry. The errors name no record, so a caller may get them before its
 * permissions for the writes are checked.
 * @throws {Problem} CANNOT_UNDO with the reason.
 */
export function planUndo(entry: EntityRecord): readonly PlannedWrite[] {
  const { changes, omitted } = keptOf(entry)
  const [main, ...others] = changes
  if (main === undefined) throw cannotUndoProblem('it changed no record')
  if (omitted > 0)
    throw cannotUndoProblem(`it changed ${omitted} more records than the audit log keeps`)
  const kind = mainKind(entry, main)
  if (main.before === null) return [plannedWrite('delete', kind, main)]
  if (main.after !== null) return [plannedWrite('patch', kind, main)]
  const writes = [
    plannedWrite('create', kind, main),
    ...others.flatMap((other) => {
      if (isLive(other)) return []
      const action = other.after === null ? 'create' : 'patch'
      return plannedWrite(action, other.kind as KindName, other)
    }),
  ]
  const { stepsMax } = batchLimits
  if (writes.length > stepsMax) throw cannotUndoProblem(`it takes more than ${stepsMax} writes`)
  return writes
}

function plannedWrite(
  action: InverseWrite['action'],
  kind: KindName,
  change: AuditedChange,
): PlannedWrite {
  return { action, kind, change, permission: permissionFor(kind, action) }
}

/**
 * The writes of a plan, with the values that they restore. The errors name records and fields, so
 * the caller of this function must have checked that the user may read all of these records.
 * @throws {Problem} CANNOT_UNDO with the reason, CHANGED_SINCE if one of the records has changed
 * since the entry.
 */
export function inverseWrites(
  planned: readonly PlannedWrite[],
  records: Records,
): readonly InverseWrite[] {
  return planned.map((one) => builders[one.action](one, records))
}

export function cannotUndoProblem(reason: string, cause?: unknown): Problem {
  return new Problem('CANNOT_UNDO', { detail: reason, cause })
}

/** @throws {Problem} CANNOT_UNDO. */
function keptOf(entry: EntityRecord): ReturnType<typeof parseAuditedChanges> {
  const { outcome, action } = entry as Readonly<Record<string, unknown>>
  if (outcome !== 'done')
    throw cannotUndoProblem(`it changed nothing; its outcome is ${String(outcome)}`)
  switch (recordedChangeState(String(entry['change'] ?? ''))) {
    case 'KEPT':
      break
    case 'TOO_LARGE':
      throw cannotUndoProblem('its change was too large to keep')
    case 'DROPPED':
      throw cannotUndoProblem('its change was dropped to make room for newer ones')
    case 'NONE':
      throw cannotUndoProblem('the audit log does not keep its change')
  }
  if (!undoable.has(String(action))) {
    throw cannotUndoProblem(`${String(action)} has its own inverse operation, so use that one`)
  }
  return parseAuditedChanges(entry)
}

/**
 * The kind of the entry's main record.
 * @throws {Problem} CANNOT_UNDO if the first stored change belongs to another record.
 */
function mainKind(entry: EntityRecord, main: AuditedChange): KindName {
  const { entity, entityId } = entry as Readonly<Record<string, unknown>>
  const kind = String(entity)
  if (!isKindName(kind) || entityId !== main.id || findEntity(kind).table !== main.kind) {
    throw cannotUndoProblem('the audit log does not keep the change of its record')
  }
  return kind
}

/**
 * Whether the record is a terminator that a router created for a host; the host creates it again
 * without an undo.
 */
function isLive({ kind, before }: AuditedChange): boolean {
  return kind === 'terminator' && before?.['isSystem'] === true
}

/** @throws {Problem} CANNOT_UNDO when the management API has no such operation. */
function permissionFor(kind: KindName, action: InverseWrite['action']): SessionPermission {
  const operation = entityOperations(findEntity(kind)).find(
    ({ api, shape }) => api === 'management' && shape === action,
  )
  const permission = operation?.permission
  if (isSessionPermission(permission)) return permission
  throw cannotUndoProblem(
    `no request can ${action === 'patch' ? 'change' : action} records of the kind ${kind}`,
  )
}

function changedSince({ kind, name, id }: AuditedChange, what: string): Problem {
  return new Problem('CHANGED_SINCE', { detail: `${kind} ${name === '' ? id : name} ${what}` })
}

function bodyOf(kind: KindName, values: JsonObject): JsonObject {
  const names = memberNames[kind] ?? {}
  const { fields } = findEntity(kind)
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      // Clears a text with an empty string, because null in a patch leaves the field unchanged.
      const isText = fields[name]?.kind === 'text' || fields[name]?.kind === 'reference'
      const given = holdsTimes(fields[name]?.kind, name) ? timeTexts(value) : value
      return [names[name] ?? name, given === null && isText ? '' : given]
    }),
  )
}

/** Whether a stored field contains times; request bodies contain times in RFC 3339 format. */
function holdsTimes(kind: string | undefined, name: string): boolean {
  return kind === 'timestamp' || name === 'roleAttributesExpireAt'
}

function timeTexts(value: Json): Json {
  if (typeof value === 'number') return rfc3339Text(value)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, timeTexts(one)]))
}

function deletion({ change, kind, permission }: PlannedWrite, records: Records): InverseWrite {
  const { id, name, after } = change
  const record = records.get(kind, id)
  if (record === undefined) throw changedSince(change, 'no longer exists')
  if (!isSameJson(wholeOf(kind, record), after ?? {})) {
    throw changedSince(change, `was changed: ${differingFields(kind, record, after ?? {})}`)
  }
  return { action: 'delete', kind, id, name, data: {}, permission, restored: null }
}

function patch({ change, kind, permission }: PlannedWrite, records: Records): InverseWrite {
  const { id, name, before, after, isPartial } = change
  const record: EntityRecord | undefined = records.get(kind, id)
  if (isPartial)
    throw cannotUndoProblem(`it changed a secret of ${kind} ${name}, whose value is not kept`)
  if (record === undefined) throw changedSince(change, 'no longer exists')
  const moved = Object.keys(after ?? {}).filter(
    (field) => !isSameJson(record[field], after?.[field]),
  )
  if (moved.length > 0) throw changedSince(change, `was changed: ${moved.join(', ')}`)
  const restored = before ?? {}
  if (Object.keys(restored).length === 0) throw cannotUndoProblem('it changed no field')
  const data = bodyOf(kind, restored)
  return { action: 'patch', kind, id, name, data, permission, restored }
}

function creation({ change, kind, permission }: PlannedWrite, records: Records): InverseWrite {
  const { id, name, before, isPartial } = change
  if (isPartial) {
    throw cannotUndoProblem(
      `${kind} ${name === '' ? id : name} had secrets that are not kept; create a new one`,
    )
  }
  if (records.get(kind, id) !== undefined) throw changedSince(change, 'exists again')
  const restored = before ?? {}
  const data = bodyOf(kind, restored)
  return { action: 'create', kind, id, name, data, permission, restored }
}

const builders = { create: creation, patch, delete: deletion } as const

/** The fields of a record that the audit log stores, without empty fields. */
function wholeOf(kind: KindName, record: EntityRecord): JsonObject {
  const fields = historyFields.get(findEntity(kind).table)
  return fields === undefined ? {} : auditedRecordFields(record, fields)
}

function differingFields(kind: KindName, record: EntityRecord, values: JsonObject): string {
  const now = wholeOf(kind, record)
  const names = new Set([...Object.keys(now), ...Object.keys(values)])
  return [...names].filter((name) => !isSameJson(now[name], values[name])).join(', ')
}

/**
 * Checks that the writes restore the previous fields of each record.
 * @param changes the changes that these writes would make to all records.
 * @throws {Problem} CANNOT_UNDO.
 */
export function requireFieldsRestored(
  writes: readonly InverseWrite[],
  changes: readonly RecordChange[],
): void {
  for (const { kind, id, name, action, restored } of writes) {
    const table = entitiesByName.get(kind)?.table
    const change = changes.find((one) => one.kind === table && one.id === id)
    const after = change?.after as EntityRecord | undefined
    if (restored === null || after === undefined) continue
    const wanted: Readonly<Record<string, Json>> = restored
    const names =
      action === 'create'
        ? [...Object.keys(wholeOf(kind, after)), ...Object.keys(wanted)]
        : Object.keys(wanted)
    const now = action === 'create' ? wholeOf(kind, after) : after
    const lost = names.filter((field) => !isSameJson(now[field], wanted[field]))
    if (lost.length === 0) continue
    const fields = [...new Set(lost)].join(', ')
    throw cannotUndoProblem(`${kind} ${name} would not get back its old value of ${fields}`)
  }
}
