import { canCallOperation, type Permission } from '../../auth/principal/permissions.ts'
import { historyKinds } from '../../entities/history-kinds.ts'
import { entitiesByName, isKindName } from '../../entities/registry.ts'
import { parseAuditedChanges } from '../../fsm/audit-query.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import type { AuditedChange } from '../../ports/audit.ts'
import type { StateView } from '../../ports/state-view.ts'
import { listPermissionForKind } from '../access/previewed-writes.ts'
import { rfc3339Text } from '../http/responses/envelope.ts'
import type { RequestContext } from '../http/request-context.ts'
import { requireCaller } from '../sessions/current-identity.ts'
import type { AuditedChangeState } from './history-schema.ts'

/** The parts of the audit log that a caller may read. */
export interface AuditReadScope {
  /** Tables whose records the caller may read; null: all tables. */
  readonly tables: ReadonlySet<string> | null
  /** Whether the caller may read the names of identities. */
  readonly mayReadIdentities: boolean
}

export const administratorAuditScope: AuditReadScope = { tables: null, mayReadIdentities: true }

export function callerAuditScope(call: RequestContext): AuditReadScope {
  const caller = requireCaller(call)
  if (caller.isAdmin) return administratorAuditScope
  // Checks the permission as for a GET, even for a request to undo an entry (a POST), because that
  // request also reads the entry.
  const mayRead = (permission: Permission): boolean =>
    canCallOperation(caller, permission, { api: call.api, method: 'GET' })
  const tables = historyKinds.filter((kind) => mayRead(listPermissionForKind(kind) ?? 'admin'))
  return { tables: new Set(tables), mayReadIdentities: mayRead('identity.read') }
}

/**
 * An audit record as an item of the API response. Fields that the caller may not read are empty.
 */
export function auditRow(
  record: EntityRecord,
  state: Pick<StateView, 'get'>,
  reader: AuditReadScope,
): JsonObject {
  const { index, session, address, action, entity, entityId, entityName, fields, outcome, reason } =
    record as Readonly<Record<string, Json>>
  const isAll = reader.tables === null
  const { changes, omitted } = shownChanges(record, reader)
  const isThere =
    isKindName(String(entity)) && state.get(String(entity) as never, String(entityId)) !== undefined
  return {
    index: Number(index),
    at: rfc3339Text(record.createdAt),
    actor: reader.mayReadIdentities
      ? { id: record['actor'] ?? '', name: record['actorName'] ?? '' }
      : { id: '', name: '' },
    // Hides session and address from callers who may read only certain kinds: these callers must
    // not learn from which addresses other identities log in.
    // @guard history-and-undo--address
    session: isAll ? (session ?? '') : '',
    address: isAll ? (address ?? '') : '',
    action: action ?? '',
    entity: entity ?? '',
    entityId: entityId ?? '',
    entityName: entityName ?? '',
    exists: isThere,
    fields: fields ?? [],
    also: (record['also'] as readonly string[]).filter((text) =>
      isKindInAuditScope(reader, text.split(' ')[1] ?? ''),
    ),
    outcome: outcome ?? '',
    reason: isAll ? (reason ?? '') : '',
    changeState: recordedChangeState(String(record['change'] ?? '')),
    changes: changes.map((change) => auditedChangeRow(change, kindOf(change, record))),
    omittedChanges: omitted,
  }
}

export function isKindInAuditScope({ tables }: AuditReadScope, kind: string): boolean {
  return tables === null || tables.has(entitiesByName.get(kind)?.table ?? '')
}

function shownChanges(
  record: EntityRecord,
  reader: AuditReadScope,
): ReturnType<typeof parseAuditedChanges> {
  const { changes, omitted } = parseAuditedChanges(record)
  // @guard history-and-undo--others
  const shown = changes.filter(({ kind }) => isKindInAuditScope(reader, kind))
  return { changes: shown, omitted: omitted + changes.length - shown.length }
}

/**
 * For the entry's main record, the kind under which the caller wrote it; for other records, the
 * kind that stores them.
 */
function kindOf({ kind, id }: AuditedChange, record: EntityRecord): string {
  const isMain =
    record['entityId'] === id && entitiesByName.get(String(record['entity']))?.table === kind
  return isMain ? String(record['entity']) : kind
}

export function recordedChangeState(text: string): AuditedChangeState {
  if (text === '') return 'NONE'
  return text.startsWith('"') ? (JSON.parse(text) as AuditedChangeState) : 'KEPT'
}

export function auditedChangeRow(change: AuditedChange, kind: string): JsonObject {
  const { id, name, before, after, isPartial } = change
  return { kind, id, name, before: shown(change, before), after: shown(change, after), isPartial }
}

/** The values of a change, with times in RFC 3339 format. */
function shown({ kind }: AuditedChange, values: JsonObject | null): JsonObject | null {
  if (values === null) return null
  const fields = entitiesByName.get(kind)?.fields ?? {}
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const isTime = fields[name]?.kind === 'timestamp' && typeof value === 'number'
      return [name, isTime ? rfc3339Text(value) : value]
    }),
  )
}
