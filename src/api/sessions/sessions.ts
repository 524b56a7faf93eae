import type { Session } from '../../entities/kinds/session.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import type { DialBind, ListResult, StateView } from '../../ports/state-view.ts'
import { requestOrigin, type RequestContext } from '../http/request-context.ts'
import {
  envelopeResponse,
  detailResponse,
  emptyResponse,
  type Reply,
} from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { listQueryParameters, readListQuery } from '../http/query-parameters.ts'
import { routerView, sortConnectedRoutersFirst } from '../fabric/router-view.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import {
  sessionCreateSchema,
  sessionDetailSchema,
  sessionManagementDetailSchema,
  sessionRoutePathSchema,
} from '../schemas/access.ts'
import { openServiceSession } from '../../auth/sessions/open-service-session.ts'
import { signSessionToken } from '../../auth/sessions/service-session-token.ts'
import { requireCaller } from './current-identity.ts'
import { RouterReconnectDelay } from './router-reconnect-delay.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { PostureService } from '../../ports/posture.ts'
import type { LiveTable, LiveCircuit } from '../../ports/live-table.ts'
import type { ApiLimits } from '../limits.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'
import {
  type ListResponseSerializer,
  createRowSerializer,
} from '../http/responses/list-response-serializer.ts'
import type { JwtSigner } from '../../auth/sessions/jwt-signer.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ApiVersionsKey } from '../api-deps.ts'

interface SessionOperationsDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly posture: PostureService
  readonly circuits: LiveTable<LiveCircuit>
  readonly jwt: JwtSigner
  readonly clock: Clock
  readonly limits: ApiLimits
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
  readonly writer: ProposalWriter
  readonly lists: ListResponseSerializer
}

const tag = 'sessions'
const ofId = { tag, path: '/sessions/{id}', success: 200 } as const

/** Operations on service sessions, which permit an API session to dial or host a service. */
export function sessionOperations(deps: SessionOperationsDeps): Operation[] {
  return [...ownSessions(deps), ...allSessions(deps)]
}

function ownSessions(deps: SessionOperationsDeps): Operation[] {
  const { state } = deps
  const routerReturn = new RouterReconnectDelay(deps)
  const common = { tag, apis: ['client'], permission: 'session' } as const
  const own = (call: RequestContext): Session | null => {
    const record = state.get('session', call.param('id'))
    // @guard objects-of-others--session
    return record?.identityId === requireCaller(call).identity.id ? record : null
  }
  return [
    {
      ...common,
      operationId: 'listSessions',
      summary: 'List the service sessions of the current identity; all for an administrator',
      method: 'GET',
      path: '/sessions',
      query: listQueryParameters,
      success: 200,
      response: { kind: 'list', schema: sessionDetailSchema },
      handle: (call) => {
        const { identity, isAdmin } = requireCaller(call)
        const query = readListQuery(call)
        const found = isAdmin
          ? state.list('session', query)
          : state.listNaming('session', 'identityId', identity.id, query)
        return listed(deps, call, found, viewOf)
      },
    },
    operationWithBody({
      ...common,
      operationId: 'createSession',
      summary: 'Create a service session',
      method: 'POST',
      path: '/sessions',
      body: { schema: sessionCreateSchema, isRequired: true },
      success: 201,
      response: { kind: 'detail', schema: sessionDetailSchema },
      refusals: [404, 409],
      handle: (call, body) => createSession(deps, routerReturn, call, body),
    }),
    {
      ...common,
      ...ofId,
      operationId: 'detailSession',
      summary: 'Show a service session of the current identity',
      method: 'GET',
      response: { kind: 'detail', schema: sessionDetailSchema },
      refusals: [404],
      handle: (call) =>
        deps.reads.found(call, `session with id ${call.param('id')}`, () => {
          const record = own(call)
          return record === null ? null : detailResponse(viewOf(deps, call, record))
        }),
    },
    {
      ...common,
      ...ofId,
      operationId: 'deleteSession',
      summary: 'End a service session of the current identity',
      method: 'DELETE',
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404, 409],
      handle: async (call) => {
        const id = call.param('id')
        await deps.reads.found(call, `session with id ${id}`, () =>
          own(call) === null ? null : emptyResponse(),
        )
        await deps.writer.deleteEntity(requestOrigin(call), 'session', id)
        return emptyResponse()
      },
    },
  ]
}

function allSessions(deps: SessionOperationsDeps): Operation[] {
  const { state } = deps
  const common = { tag, apis: ['management'], permission: 'ops.read', success: 200 } as const
  const shown = (call: RequestContext, view: (record: Session) => JsonObject) => {
    const id = call.param('id')
    return deps.reads.found(call, `session with id ${id}`, () => {
      const record = state.get('session', id)
      return record === undefined ? null : detailResponse(view(record))
    })
  }
  return [
    {
      ...common,
      operationId: 'listSessions',
      summary: 'List service sessions',
      method: 'GET',
      path: '/sessions',
      query: listQueryParameters,
      response: { kind: 'list', schema: sessionManagementDetailSchema },
      handle: (call) => {
        const found = state.list('session', readListQuery(call))
        return listed(deps, call, found, managementView)
      },
    },
    {
      ...common,
      ...ofId,
      operationId: 'detailSession',
      summary: 'Show a service session',
      method: 'GET',
      response: { kind: 'detail', schema: sessionManagementDetailSchema },
      refusals: [404],
      handle: (call) => shown(call, (record) => managementView(deps, call, record)),
    },
    {
      ...common,
      ...ofId,
      operationId: 'deleteSession',
      summary: 'End a service session',
      permission: 'ops.delete',
      method: 'DELETE',
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404, 409],
      handle: async (call) => {
        await deps.writer.deleteEntity(requestOrigin(call), 'session', call.param('id'))
        return emptyResponse()
      },
    },
    {
      ...common,
      operationId: 'detailSessionRoutePath',
      summary:
        'Show the routers of the newest circuit of a service session, if this controller created it',
      method: 'GET',
      path: '/sessions/{id}/route-path',
      response: { kind: 'detail', schema: sessionRoutePathSchema },
      refusals: [404],
      handle: (call) => shown(call, ({ id }) => routePathOf(deps.circuits, id)),
    },
  ]
}

/**
 * Routers on the path of the session's newest circuit among those that this controller owns; they
 * show where the session was last used. The list is empty if it owns none.
 */
function routePathOf(circuits: SessionOperationsDeps['circuits'], sessionId: string): JsonObject {
  const own = circuits.list().filter((circuit) => circuit.sessionId === sessionId)
  const newest = own.reduce<(typeof own)[number] | null>(
    (found, one) => (found === null || one.createdAt >= found.createdAt ? one : found),
    null,
  )
  return { routePath: newest?.routerIds ?? [] }
}

type View = (deps: SessionOperationsDeps, call: RequestContext, record: Session) => JsonObject

function listed(
  deps: SessionOperationsDeps,
  call: RequestContext,
  { records, ...pagination }: ListResult<Session>,
  view: View,
): Reply | Promise<Reply> {
  const { lists } = deps
  return lists.answer(call, {
    records,
    serialize: createRowSerializer((record) => view(deps, call, record)),
    pagination,
    filterableFields: deps.state.filterableFields('session'),
  })
}

/**
 * A service session without its token. Only the response to the create request contains the token;
 * this view contains the id in its place.
 */
function viewOf(
  { state }: SessionOperationsDeps,
  call: RequestContext,
  record: Session,
): JsonObject {
  const callerId = requireCaller(call).identity.id
  const between = state.accessBetween(record.identityId, record.serviceId)
  const routers = sortConnectedRoutersFirst(state, between?.commonRouters ?? [], callerId)
  return {
    ...state.detail('session', record, callerId),
    edgeRouters: routers.map((detail) => ({
      ...routerView(detail),
      urls: detail['supportedProtocols'] ?? {},
    })),
  }
}

function managementView(
  deps: SessionOperationsDeps,
  call: RequestContext,
  record: Session,
): JsonObject {
  const { state } = deps
  const between = state.accessBetween(record.identityId, record.serviceId)
  const policies = (between?.policies ?? []).filter(({ type }) => type === record.type)
  return {
    ...viewOf(deps, call, record),
    servicePolicies: policies.flatMap(({ id }) => state.ref('servicePolicy', id) ?? []),
  }
}

async function createSession(
  deps: SessionOperationsDeps,
  routerReturn: RouterReconnectDelay,
  call: RequestContext,
  { serviceId, type, tags }: SchemaValue<typeof sessionCreateSchema.schema>,
): Promise<Reply> {
  const { session, identity } = requireCaller(call)
  const wanted = {
    id: newShortId(),
    identityId: identity.id,
    serviceId,
    type: (type || 'Dial') as DialBind,
    tags: tags ?? {},
  }
  const id = await openServiceSession(deps, requestOrigin(call), session, wanted)
  await routerReturn.wait(
    identity.id,
    () => deps.state.accessBetween(identity.id, serviceId)?.commonRouters ?? [],
  )
  const record = deps.state.get('session', id)
  if (record === undefined) throw new Problem('NOT_FOUND', { detail: `session with id ${id}` })
  const token = await signSessionToken(deps, record, !session.clientId)
  return envelopeResponse(201, { ...viewOf(deps, call, record), token })
}
