import { entityNamed } from '../../entities/registry.ts'
import { detailSchema } from '../../entities/schema.ts'
import { listAnswer } from '../envelope.ts'
import type { Operation } from '../operation.ts'
import type { ApiParts } from '../parts.ts'
import { listParameters, listQueryOf } from '../query-parameters.ts'

const kind = 'clientExternalJwtSigner'

/** Where clients find who else they may log in with, before they have. */
export function clientJwtSignerOperations({ state }: ApiParts): Operation[] {
  return [
    {
      operationId: 'listExternalJwtSigners',
      summary: 'Lists the signers whose tokens are taken for a log-in',
      tag: 'externalJwtSigners',
      apis: ['client'],
      permission: 'public',
      method: 'GET',
      path: '/external-jwt-signers',
      query: listParameters,
      success: 200,
      response: {
        kind: 'list',
        schema: {
          name: 'clientExternalJwtSignerDetail',
          schema: detailSchema(entityNamed(kind)),
        },
      },
      refusals: [400, 401, 429, 503],
      handle: (call) => {
        const { records, limit, offset, totalCount } = state.list(kind, listQueryOf(call))
        return listAnswer(
          records.map((record) => state.detail(kind, record, '')),
          { limit, offset, totalCount },
          state.filterableFields(kind),
        )
      },
    },
  ]
}
