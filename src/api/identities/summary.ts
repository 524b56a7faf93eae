import { entities } from '../../entities/registry.ts'
import { detailResponse } from '../http/responses/envelope.ts'
import type { Operation } from '../http/operation.ts'
import { summarySchema } from '../schemas/about.ts'
import { notBuiltYet } from '../../lib/not-built-yet.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { StateView } from '../../ports/state-view.ts'

interface SummaryOperationsDeps {
  readonly cluster: ClusterView
  readonly state: StateView
}

/**
 * All kinds of records of OpenZiti. Consoles show a count for each of them, so the response also
 * contains the kinds that this controller does not have.
 */
const stores = [
  'apiSessionCertificates',
  'apiSessions',
  'authPolicies',
  'authenticators',
  'cas',
  'configTypes',
  'configs',
  'controllers',
  'edgeRouterPolicies',
  'enrollments',
  'eventualEvents',
  'externalJwtSigners',
  'identities',
  'identityTypes',
  'mfas',
  'postureCheckTypes',
  'postureChecks',
  'revocations',
  'routers',
  'routers.edge',
  'serviceEdgeRouterPolicies',
  'servicePolicies',
  'services',
  'sessions',
  'terminators',
] as const

export function summaryOperations(deps: SummaryOperationsDeps): Operation[] {
  const namesByPlural = new Map(entities.map((entity) => [entity.plural, entity.name]))
  const countOf = (store: string): number => {
    if (store === 'controllers') return deps.cluster.members().length
    if (store === 'routers.edge') return deps.state.count('edgeRouter')
    const name = namesByPlural.get(store)
    return name === undefined ? notBuiltYet(0) : deps.state.count(name)
  }
  return [
    {
      operationId: 'listSummary',
      summary: 'Count the records of each kind',
      tag: 'informational',
      apis: ['management'],
      method: 'GET',
      path: '/summary',
      // As in OpenZiti's API document, any session may read the summary: it contains counts and no
      // names.
      permission: 'session',
      success: 200,
      response: { kind: 'detail', schema: summarySchema },
      handle: () =>
        detailResponse(Object.fromEntries(stores.map((store) => [store, countOf(store)]))),
    },
  ]
}
