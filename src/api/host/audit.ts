import { auditEntry } from '../../entities/kinds/audit-entry.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { listAnswer, rfc3339Text } from '../http/answers/envelope.ts'
import type { Operation } from '../http/operation.ts'
import { listParameters, readListQuery } from '../http/answers/query-parameters.ts'
import { auditDetail } from './database-schema.ts'
import type { StateView } from '../../ports/state-view.ts'

interface AuditOperationsDeps {
  readonly state: StateView
}

const filterable = auditEntry.symbols.map(({ name }) => name)

/** Operations on audit records: the same on every controller, as they are derived from the log. */
export function auditOperations({ state }: AuditOperationsDeps): Operation[] {
  return [
    {
      operationId: 'listAudit',
      summary: 'List the audit log of the cluster, newest first',
      tag: 'audit',
      apis: ['fabric'],
      method: 'GET',
      path: '/audit',
      permission: 'admin',
      query: listParameters,
      success: 200,
      response: { kind: 'list', schema: auditDetail },
      isCompressible: true,
      handle: async (call) => {
        const { records, limit, offset, totalCount } = await state.listAudit(readListQuery(call))
        return listAnswer(records.map(rowOf), { limit, offset, totalCount }, filterable)
      },
    },
  ]
}

function rowOf(record: EntityRecord): Readonly<Record<string, unknown>> {
  const { index, session, address, action, entity, entityId, fields, also, outcome, reason } =
    record as Readonly<Record<string, unknown>>
  return {
    index,
    at: rfc3339Text(record.createdAt),
    actor: { id: record['actor'], name: record['actorName'] },
    session,
    address,
    action,
    entity,
    entityId,
    fields,
    also,
    outcome,
    reason,
  }
}
