import { detailResponse, emptyResponse } from '../http/responses/envelope.ts'
import type { Operation } from '../http/operation.ts'
import { listQueryParameters, readListQuery } from '../http/query-parameters.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import { sessionSchema } from './sessions-schema.ts'
import { sessionView } from './session-view.ts'
import { requireCaller, endApiSession } from './current-identity.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { SessionTracker } from '../../auth/sessions/session-tracker.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'
import {
  type ListResponseSerializer,
  createRowSerializer,
} from '../http/responses/list-response-serializer.ts'
import type { ApiLimits } from '../limits.ts'
import type { SessionTokenSigner } from '../../auth/sessions/session-token-signer.ts'

interface ApiSessionOperationsDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly limits: ApiLimits
  readonly sessions: SessionTracker
  readonly tokens: SessionTokenSigner
  readonly writer: ProposalWriter
  readonly lists: ListResponseSerializer
}

/** Operations that show and end the API sessions of all identities. */
export function apiSessionOperations(deps: ApiSessionOperationsDeps): Operation[] {
  const { state } = deps
  const common = {
    tag: 'apiSessions',
    apis: ['management'],
    permission: 'ops.read',
    success: 200,
  } as const
  return [
    {
      ...common,
      operationId: 'listAPISessions',
      summary: 'List API sessions',
      method: 'GET',
      path: '/api-sessions',
      query: listQueryParameters,
      response: { kind: 'list', schema: sessionSchema },
      handle: (call) => {
        const caller = requireCaller(call)
        const { records, ...pagination } = state.list('apiSession', readListQuery(call))
        return deps.lists.answer(call, {
          records,
          serialize: createRowSerializer((record) => sessionView(deps, caller, record)),
          pagination,
          filterableFields: state.filterableFields('apiSession'),
        })
      },
    },
    {
      ...common,
      operationId: 'detailAPISessions',
      summary: 'Show an API session',
      method: 'GET',
      path: '/api-sessions/{id}',
      response: { kind: 'detail', schema: sessionSchema },
      refusals: [404],
      handle: (call) => {
        const id = call.param('id')
        return deps.reads.found(call, `apiSession with id ${id}`, () => {
          const record = state.get('apiSession', id)
          if (record === undefined) return null
          return detailResponse(sessionView(deps, requireCaller(call), record))
        })
      },
    },
    {
      ...common,
      operationId: 'deleteAPISessions',
      summary: 'End an API session and revoke its token',
      permission: 'ops.delete',
      method: 'DELETE',
      path: '/api-sessions/{id}',
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [403, 404],
      handle: async (call) => {
        const id = call.param('id')
        await endApiSession(deps.writer, call, id)
        deps.sessions.forget(id)
        return emptyResponse()
      },
    },
  ]
}
