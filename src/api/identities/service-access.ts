import type { RecordOf } from '../../entities/kind-records.ts'
import { Problem } from '../../lib/problems.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { canCallOperation, type Permission } from '../../auth/principal/permissions.ts'
import type { RequestContext } from '../http/request-context.ts'
import {
  detailResponse,
  type Reply,
  rfc3339Text,
  singlePagePagination,
} from '../http/responses/envelope.ts'
import type { Operation } from '../http/operation.ts'
import { listQueryParameters, readListQuery } from '../http/query-parameters.ts'
import { routerView, sortConnectedRoutersFirst } from '../fabric/router-view.ts'
import {
  currentIdentityEdgeRouterSchema,
  policyAdviceSchema,
  serviceEdgeRoutersSchema,
  serviceUpdatesSchema,
} from '../schemas/access.ts'
import { verifyServiceSessionToken } from '../../auth/sessions/service-session-token.ts'
import { requireCaller } from '../sessions/current-identity.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { PostureService } from '../../ports/posture.ts'
import {
  type ListResponseSerializer,
  createRowSerializer,
} from '../http/responses/list-response-serializer.ts'
import type { JwtSigner } from '../../auth/sessions/jwt-signer.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ServiceLogger } from '../../ports/logger.ts'
import { MissingListenerWarnings } from './missing-listener-warnings.ts'

interface ServiceAccessOperationsDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly posture: PostureService
  readonly jwt: JwtSigner
  readonly lists: ListResponseSerializer
  readonly clock: Clock
  readonly logger: ServiceLogger
}

type Deps = ServiceAccessOperationsDeps & { readonly warnings: MissingListenerWarnings }

const SESSION_TOKEN = 'session-token'

/**
 * Operations that show which services an identity may use, and why it may or may not use a service.
 */
export function serviceAccessOperations(given: ServiceAccessOperationsDeps): Operation[] {
  const { state } = given
  const deps: Deps = { ...given, warnings: new MissingListenerWarnings(given) }
  return [
    {
      operationId: 'listServiceUpdates',
      summary: 'Show when the services of the current identity last changed',
      tag: 'currentApiSession',
      apis: ['client', 'management'],
      permission: 'session',
      method: 'GET',
      path: '/current-api-session/service-updates',
      success: 200,
      response: { kind: 'detail', schema: serviceUpdatesSchema },
      handle: (call) => {
        const { session, identity } = requireCaller(call)
        const changedAt = state.lastChangeAt(session.id) ?? session.createdAt
        const lastChangeAt = Math.max(changedAt, deps.posture.lapsedAt(session))
        // The time of the last change as text; clients compare only whether it differs from the
        // previous text. Adds one millisecond for each change by posture reports, because the
        // clocks of the controllers that receive the reports differ.
        const moves = deps.posture.moves(identity.id)
        return detailResponse({ lastChangeAt: rfc3339Text(lastChangeAt + moves) })
      },
    },
    {
      operationId: 'getCurrentIdentityEdgeRouters',
      summary: 'List the edge routers of the current identity; all for an administrator',
      tag: 'currentIdentity',
      apis: ['client'],
      permission: 'session',
      method: 'GET',
      path: '/current-identity/edge-routers',
      success: 200,
      response: { kind: 'list', schema: currentIdentityEdgeRouterSchema },
      handle: (call) => ownEdgeRouters(deps, call),
    },
    {
      operationId: 'listServiceEdgeRouters',
      summary: 'List the edge routers for a service',
      tag: 'services',
      apis: ['client'],
      permission: 'session',
      method: 'GET',
      path: '/services/{id}/edge-routers',
      query: listQueryParameters,
      headers: [
        {
          name: SESSION_TOKEN,
          description: 'token of a service session of the caller for this service',
        },
      ],
      success: 200,
      response: { kind: 'detail', schema: serviceEdgeRoutersSchema },
      refusals: [404],
      handle: (call) => edgeRoutersOfService(deps, call),
    },
    {
      operationId: 'getIdentityPolicyAdvice',
      summary: 'Explain the access of an identity to a service (policy advice)',
      tag: 'identities',
      apis: ['management'],
      permission: 'service.read',
      method: 'GET',
      path: '/identities/{id}/policy-advice/{serviceId}',
      success: 200,
      response: { kind: 'detail', schema: policyAdviceSchema },
      refusals: [404],
      handle: (call) => advice(deps, call),
    },
  ]
}

function ownEdgeRouters(
  { state, lists, warnings }: Deps,
  call: RequestContext,
): Reply | Promise<Reply> {
  const { identity, isAdmin } = requireCaller(call)
  const query = { filter: 'isVerified = true', limit: -1 } as const
  const found = isAdmin
    ? state.list('edgeRouter', query)
    : state.subList('identity', identity.id, 'edge-routers', query)
  const records = found?.records ?? []
  warnings.check(identity, records)
  return lists.answer(call, {
    records,
    serialize: createRowSerializer((record) =>
      routerView(state.detail('edgeRouter', record, identity.id), [
        '_links',
        'createdAt',
        'id',
        'tags',
        'updatedAt',
      ]),
    ),
    pagination: singlePagePagination(records),
    filterableFields: [],
  })
}

async function edgeRoutersOfService(deps: Deps, call: RequestContext): Promise<Reply> {
  const { state } = deps
  const { identity, session } = requireCaller(call)
  const id = call.param('id')
  const found = await deps.reads.found(call, `service with id ${id}`, () => {
    const between = state.accessBetween(identity.id, id)
    if (between === null || between.permissions.length === 0) return null
    deps.warnings.check(identity, between.commonRouters)
    const routers = sortConnectedRoutersFirst(
      state,
      asked(deps, call, between.commonRouters),
      identity.id,
    )
    return detailResponse({ edgeRouters: routers.map((detail) => routerView(detail)) })
  })
  const token = call.headers[SESSION_TOKEN]
  if (token !== undefined) await checkSessionToken(deps, call, token, session.id)
  return found
}

/**
 * Those of the routers that the caller's list query selects, by filter, sort order and page.
 * @throws {Problem} in the same cases as `StateView.list`.
 */
function asked(
  { state }: ServiceAccessOperationsDeps,
  call: RequestContext,
  routers: readonly RecordOf<'edgeRouter'>[],
): readonly RecordOf<'edgeRouter'>[] {
  const query = readListQuery(call)
  const { filter, sort } = query
  const isAmong = new Set(routers.map(({ id }) => id))
  const found =
    filter === undefined && sort === undefined
      ? routers
      : state.list('edgeRouter', { ...query, limit: -1, offset: 0 }).records
  const start = Math.max(0, query.offset ?? 0)
  const count = query.limit === undefined || query.limit < 1 ? Infinity : query.limit
  return found.filter(({ id }) => isAmong.has(id)).slice(start, start + count)
}

/**
 * Checks the token of a service session. The token of an ended session is also accepted, because
 * the response depends on the current policies. A client keeps its token, which becomes valid again
 * if access is granted again.
 * @throws {Problem} UNAUTHORIZED for a token of another API session or service.
 */
async function checkSessionToken(
  deps: ServiceAccessOperationsDeps,
  call: RequestContext,
  token: string,
  apiSessionId: string,
): Promise<void> {
  const claimed = await verifyServiceSessionToken(deps, token)
  // @guard ended-service-sessions--routers
  const isOwn = claimed?.apiSessionId === apiSessionId && claimed.serviceId === call.param('id')
  if (!isOwn) throw new Problem('UNAUTHORIZED')
}

/**
 * Reason why the identity can or cannot use the service, regardless of the posture of its devices.
 * Names of records that the caller may not read are empty.
 */
function advice(deps: ServiceAccessOperationsDeps, call: RequestContext): Reply | Promise<Reply> {
  const { state } = deps
  const identityId = call.param('id')
  const serviceId = call.param('serviceId')
  const caller = requireCaller(call)
  const callerId = caller.identity.id
  const what = `identity ${identityId.slice(0, 128)} or service ${serviceId.slice(0, 128)}`
  return deps.reads.found(call, what, () => {
    const between = state.accessBetween(identityId, serviceId)
    if (between === null) return null
    // @guard policy-advice-tells-names
    const readable = (permission: Permission, ref: JsonObject | null): JsonObject | null =>
      ref === null || canCallOperation(caller, permission, call) ? ref : { ...ref, name: '' }
    return detailResponse({
      identity: readable('identity.read', state.ref('identity', identityId)),
      identityId,
      service: state.ref('service', serviceId),
      serviceId,
      isBindAllowed: between.permissions.includes('Bind'),
      isDialAllowed: between.permissions.includes('Dial'),
      identityRouterCount: between.identityRouterCount,
      serviceRouterCount: between.serviceRouterCount,
      commonRouters: between.commonRouters.map((router) => ({
        ...readable('router.read', state.ref('edgeRouter', router.id)),
        isOnline: state.detail('edgeRouter', router, callerId)['isOnline'] ?? false,
      })),
    })
  })
}
