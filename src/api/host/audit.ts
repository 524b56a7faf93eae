import { auditEntry } from '../../entities/kinds/audit-entry.ts'
import {
  createRowSerializer,
  type ListResponseSerializer,
} from '../http/responses/list-response-serializer.ts'
import type { Operation } from '../http/operation.ts'
import { listQueryParameters, readListQuery } from '../http/query-parameters.ts'
import { administratorAuditScope, auditRow } from '../history/audit-rows.ts'
import { auditDetailSchema } from '../history/history-schema.ts'
import type { StateView } from '../../ports/state-view.ts'

interface AuditOperationsDeps {
  readonly state: StateView
  readonly lists: ListResponseSerializer
}

const filterable = auditEntry.symbols.map(({ name }) => name)

/**
 * Operations on audit records. Every controller has the same audit records, because controllers
 * derive them from the log.
 */
export function auditOperations({ state, lists }: AuditOperationsDeps): Operation[] {
  return [
    {
      operationId: 'listAudit',
      summary: 'List the audit log of the cluster, newest first',
      tag: 'audit',
      apis: ['fabric'],
      method: 'GET',
      path: '/audit',
      permission: 'admin',
      query: listQueryParameters,
      success: 200,
      response: { kind: 'list', schema: auditDetailSchema },
      isCompressible: true,
      handle: async (call) => {
        const { records, ...pagination } = await state.listAudit(readListQuery(call))
        return lists.answer(call, {
          records,
          serialize: createRowSerializer((record) =>
            auditRow(record, state, administratorAuditScope),
          ),
          pagination,
          filterableFields: filterable,
        })
      },
    },
  ]
}
