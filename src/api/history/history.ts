import { historyKinds } from '../../entities/history-kinds.ts'
import { entities, isKindName } from '../../entities/registry.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import { auditEntry } from '../../entities/kinds/audit-entry.ts'
import type { StateView } from '../../ports/state-view.ts'
import {
  detailResponse,
  listResponse,
  type Reply,
  singlePagePagination,
} from '../http/responses/envelope.ts'
import { createRowSerializer } from '../http/responses/list-response-serializer.ts'
import { listQueryParameters, readListQuery } from '../http/query-parameters.ts'
import type { RequestContext } from '../http/request-context.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { auditRow, callerAuditScope, isKindInAuditScope } from './audit-rows.ts'
import {
  auditDetailSchema,
  undoBodySchema,
  undoResultSchema,
  undoPreviewSchema,
} from './history-schema.ts'
import { UndoService, type UndoServiceDeps } from './undo.ts'

const text = { type: 'string' } as const
const tables: ReadonlySet<string> = new Set(historyKinds)
/** Names of the kinds that have a history, as audit entries contain these names. */
const kinds = entities.filter(({ table }) => tables.has(table)).map(({ name }) => name)
const filterable = auditEntry.symbols.map(({ name }) => name)
const INDEX = /^[0-9]{1,15}$/

/** Operations that list changes of records, and operations that undo such changes. */
export function historyOperations(deps: UndoServiceDeps): Operation[] {
  const undo = new UndoService(deps)
  const { state } = deps
  const about = { tag: 'history', apis: ['management'], permission: 'session' } as const
  const body = { schema: undoBodySchema, isRequired: false } as const
  return [
    {
      ...about,
      operationId: 'listHistory',
      summary:
        'List the changes of records that the caller may read, newest first; can be limited to one record, also a deleted one',
      method: 'GET',
      path: '/history',
      query: [
        { name: 'kind', schema: { type: 'string', enum: kinds }, isRequired: false },
        { name: 'record', schema: text, isRequired: false },
        { name: 'actor', schema: text, isRequired: false },
        { name: 'action', schema: text, isRequired: false },
        { name: 'since', schema: text, isRequired: false },
        { name: 'until', schema: text, isRequired: false },
        { name: 'all', schema: { type: 'string', enum: ['true', 'false'] }, isRequired: false },
        ...listQueryParameters,
      ],
      success: 200,
      response: { kind: 'list', schema: auditDetailSchema },
      handle: (call) => list(deps, call),
    },
    {
      ...about,
      operationId: 'detailHistory',
      summary: 'Show one entry of the history',
      method: 'GET',
      path: '/history/{index}',
      success: 200,
      response: { kind: 'detail', schema: auditDetailSchema },
      refusals: [404],
      handle: (call) =>
        detailResponse(auditRow(entryOf(state, call), state, callerAuditScope(call))),
    },
    {
      ...about,
      operationId: 'previewUndo',
      summary: 'Preview the undo of an entry: the records and the access that it would change',
      method: 'GET',
      path: '/history/{index}/undo',
      success: 200,
      response: { kind: 'detail', schema: undoPreviewSchema },
      refusals: [404, 409],
      handle: async (call) => detailResponse(await undo.preview(call, entryOf(state, call))),
    },
    operationWithBody({
      ...about,
      operationId: 'undoEntry',
      summary: 'Undo an entry with the rights of the caller, unless its records changed since',
      method: 'POST',
      path: '/history/{index}/undo',
      body,
      success: 200,
      response: { kind: 'detail', schema: undoResultSchema },
      refusals: [404, 409, 412],
      handle: async (call, { version }) =>
        detailResponse(await undo.apply(call, entryOf(state, call), version)),
    }),
  ]
}

async function list(
  { state, processor, lists }: UndoServiceDeps,
  call: RequestContext,
): Promise<Reply> {
  const reader = callerAuditScope(call)
  // Refuses filters and sorting: the caller could use them to find out values that the response
  // withholds.
  // @guard history-and-undo--filter
  if (reader.tables !== null && (call.first('filter') ?? call.first('sort')) !== undefined) {
    throw new Problem('UNAUTHORIZED', { detail: 'filter and sort are for administrators' })
  }
  // @guard history-and-undo--by-actor
  if (call.first('actor') !== undefined && !reader.mayReadIdentities) {
    throw new Problem('UNAUTHORIZED', { detail: 'actor needs the permission identity.read' })
  }
  const kind = call.first('kind')
  const query = {
    ...readListQuery(call),
    tables: reader.tables,
    isOfRecords: call.first('all') !== 'true',
    kind: kind !== undefined && isKindName(kind) ? kind : undefined,
    record: call.first('record'),
    actor: call.first('actor'),
    action: call.first('action'),
    sinceMs: timeOf(call, 'since'),
    untilMs: timeOf(call, 'until'),
  }
  // Skips the search for a caller that may read no records.
  if (reader.tables?.size === 0) return listResponse([], singlePagePagination([]), filterable)
  const { records, ...pagination } = await processor.finish(call.sharer, state.listHistory(query))
  return await lists.answer(call, {
    records,
    serialize: createRowSerializer((record) => auditRow(record, state, reader)),
    pagination,
    filterableFields: filterable,
  })
}

/** @throws {Problem} COULD_NOT_VALIDATE. */
function timeOf(call: RequestContext, name: string): number | undefined {
  const value = call.first(name)
  if (value === undefined) return undefined
  const ms = Date.parse(value)
  if (Number.isNaN(ms)) throw fieldProblem(name, `${name} in query must be a date-time`, value)
  return ms
}

/** @throws {Problem} NOT_FOUND also for an entry that the caller may not read. */
function entryOf(state: StateView, call: RequestContext): EntityRecord {
  const index = call.param('index')
  const entry = INDEX.test(index) ? state.auditRecordAt(Number(index)) : undefined
  // @guard history-and-undo--entry
  if (entry === undefined || !isKindInAuditScope(callerAuditScope(call), String(entry['entity']))) {
    throw new Problem('NOT_FOUND', { detail: `no entry ${index.slice(0, 16)} in the audit log` })
  }
  return entry
}
