import { authPolicies, cas, externalJwtSigners } from './authority-stores.ts'
import { leftOut, type StoreTable } from './conversion.ts'
import { authenticators, enrollments, identities, mfas } from './identity-stores.ts'
import { routers, terminators } from './router-stores.ts'
import {
  configs,
  configTypes,
  edgeRouterPolicies,
  postureChecks,
  serviceEdgeRouterPolicies,
  servicePolicies,
  services,
} from './service-stores.ts'

const SESSIONS_END =
  'all sessions end; clients log in again by themselves, people in browsers by hand'

/** All stores of OpenZiti 1.5 to 2.1, in an order in which each one finds those that it needs. */
export const storeTables: readonly StoreTable[] = [
  configTypes,
  configs,
  externalJwtSigners,
  authPolicies,
  cas,
  services,
  routers,
  identities,
  authenticators,
  enrollments,
  mfas,
  servicePolicies,
  edgeRouterPolicies,
  serviceEdgeRouterPolicies,
  postureChecks,
  terminators,
  leftOut('apiSessions', SESSIONS_END),
  leftOut('apiSessionCertificates', SESSIONS_END),
  leftOut('sessions', SESSIONS_END),
  leftOut('revocations', 'they revoke tokens of sessions, which all end'),
  leftOut('controllers', 'the controllers of the new cluster are those that join it'),
  leftOut('identityTypes', 'every network has the same'),
  leftOut('postureCheckTypes', 'every network has the same'),
  leftOut(
    'eventualEvents',
    'they are work of the controller that has been done or follows from records',
  ),
]

/** Buckets that are not stores: derived data, and facts about the file. */
export const otherBuckets: ReadonlySet<string> = new Set([
  'meta',
  'zdb',
  'index',
  'ziti',
  'ziti/indexes',
  'ziti/metadata',
  'ziti/versions',
])
