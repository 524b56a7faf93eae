import { findEntity } from '../../entities/registry.ts'
import { detailSchema } from '../../entities/schema.ts'
import type { Operation } from '../http/operation.ts'
import { listQueryParameters, readListQuery } from '../http/query-parameters.ts'
import type { StateView } from '../../ports/state-view.ts'
import {
  type ListResponseSerializer,
  createRowSerializer,
} from '../http/responses/list-response-serializer.ts'

interface ClientJwtSignerOperationsDeps {
  readonly state: StateView
  readonly lists: ListResponseSerializer
}

const kind = 'clientExternalJwtSigner'

/**
 * Operations that list the identity providers with which a client can log in. A client can call
 * these operations without a session.
 */
export function clientJwtSignerOperations({
  state,
  lists,
}: ClientJwtSignerOperationsDeps): Operation[] {
  return [
    {
      operationId: 'listExternalJwtSigners',
      summary: 'List the external JWT signers enabled for log-in',
      tag: 'externalJwtSigners',
      apis: ['client'],
      permission: 'public',
      method: 'GET',
      path: '/external-jwt-signers',
      query: listQueryParameters,
      success: 200,
      response: {
        kind: 'list',
        schema: {
          name: 'clientExternalJwtSignerDetail',
          schema: detailSchema(findEntity(kind)),
        },
      },
      refusals: [401, 429],
      handle: (call) => {
        const { records, ...pagination } = state.list(kind, readListQuery(call))
        return lists.answer(call, {
          records,
          serialize: createRowSerializer((record) => state.detail(kind, record, '')),
          pagination,
          filterableFields: state.filterableFields(kind),
        })
      },
    },
  ]
}
