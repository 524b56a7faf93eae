import { fromBinary } from '@bufbuild/protobuf'
import {
  AccessRevokeSchema,
  ClusterActionSchema,
  type Command,
  CommandKind,
  CommandKindSchema,
  RestoreEndSchema,
} from '../../../proto/gen/command_pb.ts'
import { isSameJson, type JsonObject } from '../../lib/text/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { actorName, actorSessionId } from '../../ports/actor.ts'
import type { AuditRecord } from '../../ports/audit.ts'
import type { RecordChange } from '../../ports/change-feed.ts'
import { HISTORY_FEATURE_LEVEL } from '../../ports/feature-level.ts'
import { historyFields } from '../../entities/history-kinds.ts'
import { entitiesByName } from '../../entities/registry.ts'
import { formatAuditedChanges } from './audited-change.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'

/** One record that a log entry writes, or would have written if it had not been refused. */
export interface AuditedWrite {
  readonly action: 'create' | 'replace' | 'patch' | 'delete'
  readonly entity: string
  readonly id: string
  /**
   * Names of the changed fields, or of the given fields if the update was refused; empty for a
   * creation or a deletion.
   */
  fields: readonly string[]
}

/**
 * Commands that controllers send repeatedly, for maintenance or as parts of a restore; they are not
 * audited.
 */
const unaudited: ReadonlySet<number> = new Set([
  CommandKind.SESSION_TOUCH,
  CommandKind.INTEGRITY_CLAIM,
  CommandKind.MFA_RESEAL,
  CommandKind.PASSWORD_REHASH,
  CommandKind.ROUTER_PRESENCE,
  CommandKind.RESTORE_CHUNK,
])

/**
 * Commands that are audited only if they list a write for the audit record (`touched`). Records of
 * every log-in attempt would fill the audit log; only an attempt that locks a password, or causes a
 * pause, lists a write.
 */
const recordedWhenWritten: ReadonlySet<number> = new Set([
  CommandKind.PASSWORD_ATTEMPT,
  CommandKind.MFA_ATTEMPT,
  // Such a command may announce expiries without ending access, and may be applied twice. It is
  // audited only when it ends access.
  CommandKind.ACCESS_END,
])

/**
 * Commands for which the audit log stores the changes: only commands that people send. Sessions,
 * routers and maintenance write far more often, and people need not undo their writes.
 */
export const commandsWithAuditedChanges: ReadonlySet<number> = new Set([
  CommandKind.ENTITY_CREATE,
  CommandKind.ENTITY_REPLACE,
  CommandKind.ENTITY_PATCH,
  CommandKind.ENTITY_DELETE,
  CommandKind.ENTITY_BATCH,
  CommandKind.IDENTITY_DISABLE,
  CommandKind.IDENTITY_ENABLE,
  CommandKind.SERVICE_CONFIGS_ASSOCIATE,
  CommandKind.SERVICE_CONFIGS_DISASSOCIATE,
  CommandKind.CA_VERIFY,
])

const actions: ReadonlyMap<number, string> = new Map(
  CommandKindSchema.values.map(({ name, number }) => [
    number,
    name.replace('COMMAND_KIND_', '').toLowerCase().replaceAll('_', '-'),
  ]),
)
const none: readonly string[] = []

/** The audit record for a log entry; null if the entry is not audited. */
export function entryAuditRecord(
  state: State,
  command: Command,
  place: { readonly index: number; readonly logTimeMs: number },
  result: {
    readonly outcome: Outcome
    readonly touched: readonly AuditedWrite[]
    /** Net changes to records of the kinds with a history. */
    readonly changes: readonly RecordChange[]
  },
): AuditRecord | null {
  if (unaudited.has(command.kind)) return null
  const { outcome, touched } = result
  if (recordedWhenWritten.has(command.kind) && touched.length === 0) return null
  const recorded = outcome.ok ? recordedAction(command, touched) : null
  const own = touched.find(({ id }) => outcome.ok && id === outcome.id)
  const isOfRecord = recorded === null || command.kind === CommandKind.ACCESS_END
  const named = own ?? (isOfRecord ? touched[0] : undefined)
  const reason = recorded?.reason ?? restoreReason(command)
  const { actor } = command
  const who = actorName(actor)
  const session = actorSessionId(actor)
  const name = state.get('identity', who)?.name ?? ''
  const entityId = named?.id ?? (outcome.ok ? outcome.id : '')
  // Some commands name none of the written records as their main record; the kind then comes from
  // the changes.
  const { changes } = result
  const changed = changes.length === 0 ? undefined : changes.find(({ id }) => id === entityId)
  return {
    index: place.index,
    atMs: place.logTimeMs,
    actor: who,
    actorName: name || (isSystemAlone(actor) ? who : ''),
    session,
    address: actor.value?.address ?? '',
    action: recorded?.action ?? named?.action ?? actions.get(command.kind) ?? String(command.kind),
    entity: recorded === null ? (named?.entity ?? changed?.kind ?? '') : recorded.entity,
    entityId,
    entityName: recordName(state, named, changed),
    fields: named?.fields ?? none,
    also: touched.length === (named === undefined ? 0 : 1) ? none : others(touched, named),
    outcome: recorded?.outcome ?? (outcome.ok ? 'done' : outcome.code),
    reason,
    change: changes.length === 0 ? '' : formatAuditedChanges(changes, entityId),
  }
}

/**
 * Name of a record after the entry or, if the entry deleted the record, before it; '' below the
 * feature level from which the audit log stores changes.
 */
function recordName(
  state: State,
  named: AuditedWrite | undefined,
  changed: RecordChange | undefined,
): string {
  if (state.featureLevel < HISTORY_FEATURE_LEVEL) return ''
  let record = (changed?.after ?? changed?.before) as EntityRecord | undefined
  const table = named === undefined ? undefined : entitiesByName.get(named.entity)?.table
  if (record === undefined && named !== undefined && table !== undefined) {
    record = historyFields.has(table) ? state.inTable(table, named.id) : undefined
  }
  const name = record?.['name']
  return typeof name === 'string' ? name : ''
}

/**
 * The action of a command whose audit record describes an action on the cluster, or ended access,
 * and not the write of one record; null for other commands.
 */
function recordedAction(
  { kind, payload }: Command,
  touched: readonly AuditedWrite[],
): Pick<AuditRecord, 'action' | 'entity' | 'outcome' | 'reason'> | null {
  if (kind === CommandKind.ACCESS_REVOKE) {
    const { nodeId } = fromBinary(AccessRevokeSchema, payload)
    const reason = `${nodeId} is reported as compromised`
    return { action: 'access-revoke', entity: 'controller', outcome: 'done', reason }
  }
  if (kind === CommandKind.ACCESS_END) {
    const entity = touched[0]?.entity ?? ''
    return { action: 'access-end', entity, outcome: 'done', reason: '' }
  }
  if (kind !== CommandKind.CLUSTER_ACTION) return null
  const { action, target, outcome, reason } = fromBinary(ClusterActionSchema, payload)
  return { action, entity: target === '' ? '' : 'controller', outcome, reason }
}

/** Text that identifies the backup in the audit record of a restore. */
function restoreReason({ kind, payload }: Command): string {
  if (kind !== CommandKind.RESTORE_END) return ''
  return fromBinary(RestoreEndSchema, payload).reason
}

/** Whether the system acts without a caller. */
function isSystemAlone(actor: Command['actor']): boolean {
  return actor.case === 'system' && actor.value.identityId === ''
}

function others(touched: readonly AuditedWrite[], named: AuditedWrite | undefined): string[] {
  return touched
    .filter((one) => one !== named)
    .map(({ action, entity, id }) => `${action} ${entity} ${id}`)
}

/** The names of the fields that differ, without the fields that every write changes. */
export function changedFields(before: EntityRecord, after: JsonObject): string[] {
  return Object.keys(after).filter((name) => !isSameJson(before[name], after[name]))
}
