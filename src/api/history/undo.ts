import { createHash } from 'node:crypto'
import { CommandKind } from '../../../proto/gen/command_pb.ts'
import type { AccessDifference, PreviewedWrite } from '../../fsm/access/access-difference.ts'
import { toAuditedChange } from '../../fsm/apply/audited-change.ts'
import { canCallOperation } from '../../auth/principal/permissions.ts'
import type { KindName } from '../../entities/kind-names.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { Problem } from '../../lib/problems.ts'
import { retryWhenRecordsChange } from '../../lib/retry-when-records-change.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { Actor } from '../../ports/actor.ts'
import type { ProposalInput } from '../../ports/proposer.ts'
import {
  computeAccessDifference,
  buildPreviewResponse,
  type PreviewOperationsDeps,
} from '../access/preview.ts'
import {
  listPermissionForKind,
  permissionsForPreview,
  PreviewedWriteBuilder,
} from '../access/previewed-writes.ts'
import { CallerReadPermissions } from '../access/caller-read-permissions.ts'
import {
  requestActor,
  type RequestContext,
  requestOrigin,
  toWriteRequest,
} from '../http/request-context.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'
import type { ListResponseSerializer } from '../http/responses/list-response-serializer.ts'
import { requireCaller } from '../sessions/current-identity.ts'
import {
  auditRow,
  auditedChangeRow,
  type AuditReadScope,
  callerAuditScope,
  isKindInAuditScope,
} from './audit-rows.ts'
import {
  cannotUndoProblem,
  type InverseWrite,
  inverseWrites,
  planUndo,
  requireFieldsRestored,
} from './inverse-writes.ts'

export interface UndoServiceDeps extends PreviewOperationsDeps {
  readonly writer: ProposalWriter
  readonly lists: ListResponseSerializer
}

type JudgedOn = NonNullable<ProposalInput['judgedOn']>

/** An undo that passed every check, and the effect that it would have. */
interface JudgedUndo {
  readonly prepared: readonly PreviewedWrite[]
  readonly judgedOn: JudgedOn
  readonly difference: AccessDifference
  readonly version: string
}

/**
 * Undoes entries of the audit log. The caller needs the permissions for the necessary writes, as if
 * the caller sent these as separate requests.
 */
export class UndoService {
  readonly #deps: UndoServiceDeps
  readonly #previewed: PreviewedWriteBuilder

  constructor(deps: UndoServiceDeps) {
    this.#deps = deps
    this.#previewed = new PreviewedWriteBuilder(deps.validator)
  }

  /** The effect that the undo would have at this time; writes nothing. */
  async preview(call: RequestContext, entry: EntityRecord): Promise<JsonObject> {
    const { state } = this.#deps
    const planned = planUndo(entry)
    const required = new CallerReadPermissions(call)
    // The preview requires permission to read these kinds, because its refusals and results reveal
    // their records.
    // @guard history-and-undo--preview
    for (const { kind } of planned) {
      for (const permission of permissionsForPreview(kind)) required.require(permission)
    }
    const writes = inverseWrites(planned, state)
    const { difference, version } = await this.#judge(call, writes)
    const reader = callerAuditScope(call)
    const readable = new CallerReadPermissions(call)
    const mayReadAccess = readable.has('identity.read') && readable.has('service.read')
    const changes = difference.changes.filter(({ kind }) => isKindInAuditScope(reader, kind))
    return {
      entry: auditRow(entry, state, reader),
      writes: writes.map(shownWrite),
      changes: changes.map((change) =>
        auditedChangeRow(toAuditedChange(change), kindOf(writes, change)),
      ),
      omittedChanges: difference.changes.length - changes.length,
      access: mayReadAccess ? buildPreviewResponse(state, call, difference, readable) : null,
      version,
    }
  }

  /**
   * @param version version of the preview that the caller has seen. If a record has changed since
   * that preview, the undo is refused. undefined: the caller has seen no preview.
   */
  async apply(
    call: RequestContext,
    entry: EntityRecord,
    version: string | undefined,
  ): Promise<JsonObject> {
    const request = toWriteRequest(call)
    return await retryWhenRecordsChange(request, this.#deps.limits, async () => {
      const planned = planUndo(entry)
      // @guard history-and-undo--operation
      for (const { permission } of planned) requireRight(call, permission)
      const reader = callerAuditScope(call)
      // @guard history-and-undo--refusal
      for (const { kind } of planned) requireReadable(reader, kind)
      const writes = inverseWrites(planned, this.#deps.state)
      const judged = await this.#judge(call, writes)
      if (version !== undefined && version !== judged.version) {
        const detail = 'a record changed after the preview of the undo'
        throw new Problem('PRECONDITION_FAILED', { detail })
      }
      const [main] = writes
      if (main === undefined) throw cannotUndoProblem('it changed no record')
      const { identity } = requireCaller(call)
      // The state machine checks only one permission for each command. So the command also requires
      // that the caller's identity record, which contains all of its permissions, has not changed
      // since the check.
      const caller = { entity: 'identity', id: identity.id, revision: identity.revision } as const
      const judgedOn = identity.revision === 0 ? judged.judgedOn : [...judged.judgedOn, caller]
      const origin = { ...requestOrigin(call, request), actor: actorWith(call, main.permission) }
      const steps = judged.prepared.map(({ mode, entity, id, fields }) => ({
        kind: stepKinds[mode],
        entity,
        id,
        fields,
      }))
      await this.#deps.writer.batch(origin, steps, 0, judgedOn)
      return { writes: writes.map(shownWrite) }
    })
  }

  /**
   * @throws {Problem} with the codes with which the writes would be refused; CANNOT_UNDO,
   * CHANGED_SINCE, UNAUTHORIZED.
   */
  async #judge(call: RequestContext, writes: readonly InverseWrite[]): Promise<JudgedUndo> {
    const { state, preparers } = this.#deps
    const prepared: PreviewedWrite[] = []
    const judgedOn: JudgedOn[number][] = []
    for (const { action, kind, id, data } of writes) {
      const deps = { preparers, level: state.featureLevel }
      const one = await this.#previewed.prepared(deps, call, { action, kind, id, data })
      prepared.push(one.write)
      const revision = state.get(kind, id)?.revision ?? 0
      judgedOn.push({ entity: kind, id, revision }, ...one.judgedOn)
    }
    const difference = await computeAccessDifference(this.#deps, call, prepared)
    requireFieldsRestored(writes, difference.changes)
    return { prepared, judgedOn, difference, version: versionOf(judgedOn) }
  }
}

const stepKinds = {
  create: CommandKind.ENTITY_CREATE,
  replace: CommandKind.ENTITY_REPLACE,
  patch: CommandKind.ENTITY_PATCH,
  delete: CommandKind.ENTITY_DELETE,
} as const

function versionOf(judgedOn: JudgedOn): string {
  const texts = judgedOn.map(({ entity, id, revision }) => `${entity} ${id} ${revision}`)
  return createHash('sha256').update(texts.join('\n')).digest('hex').slice(0, 32)
}

function shownWrite({ action, kind, id, name, data }: InverseWrite): JsonObject {
  return { action, kind, id, name, data }
}

function kindOf(
  writes: readonly InverseWrite[],
  change: { readonly kind: string; readonly id: string },
): string {
  return writes.find(({ id }) => id === change.id)?.kind ?? change.kind
}

/** @throws {Problem} UNAUTHORIZED. */
function requireRight(call: RequestContext, permission: InverseWrite['permission']): void {
  if (canCallOperation(requireCaller(call), permission, { api: call.api, method: 'POST' })) {
    return
  }
  throw new Problem('UNAUTHORIZED', { detail: `the undo needs the permission ${permission}` })
}

/**
 * An undo needs permission to read the records that it writes: its result and its errors show their
 * names and values.
 * @throws {Problem} UNAUTHORIZED.
 */
function requireReadable(reader: AuditReadScope, kind: KindName): void {
  if (isKindInAuditScope(reader, kind)) return
  const permission = listPermissionForKind(kind) ?? 'admin'
  throw new Problem('UNAUTHORIZED', { detail: `the undo needs the permission ${permission}` })
}

/**
 * The actor of the request, with the permission that a write requires, which the state machine
 * checks. The permission of the undo request itself is not enough, because every session has it.
 */
function actorWith(call: RequestContext, permission: InverseWrite['permission']): Actor {
  const actor = requestActor(call)
  // @guard history-and-undo--authority
  return actor.case === 'session'
    ? { case: 'session', value: { ...actor.value, permission } }
    : actor
}
