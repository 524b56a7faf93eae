import { authPolicyStore, caStore, externalJwtSignerStore } from './authority-stores.ts'
import { unmigratedStore, type StoreTable } from './conversion.ts'
import { authenticatorStore, enrollmentStore, identityStore, mfaStore } from './identity-stores.ts'
import { routerStore, terminatorStore } from './router-stores.ts'
import {
  configStore,
  configTypeStore,
  edgeRouterPolicyStore,
  postureCheckStore,
  serviceEdgeRouterPolicyStore,
  servicePolicyStore,
  serviceStore,
} from './service-stores.ts'

const SESSIONS_END =
  'all sessions end; clients log in again by themselves, people in browsers by hand'

/**
 * All stores of OpenZiti 1.5 to 2.1, in order of conversion: a store follows the stores that its
 * conversion needs.
 */
export const storeTables: readonly StoreTable[] = [
  configTypeStore,
  configStore,
  externalJwtSignerStore,
  authPolicyStore,
  caStore,
  serviceStore,
  routerStore,
  identityStore,
  authenticatorStore,
  enrollmentStore,
  mfaStore,
  servicePolicyStore,
  edgeRouterPolicyStore,
  serviceEdgeRouterPolicyStore,
  postureCheckStore,
  terminatorStore,
  unmigratedStore('apiSessions', SESSIONS_END),
  unmigratedStore('apiSessionCertificates', SESSIONS_END),
  unmigratedStore('sessions', SESSIONS_END),
  unmigratedStore('revocations', 'they revoke tokens of sessions, which all end'),
  unmigratedStore('controllers', 'the controllers of the new cluster are those that join it'),
  unmigratedStore('identityTypes', 'every network has the same'),
  unmigratedStore('postureCheckTypes', 'every network has the same'),
  unmigratedStore(
    'eventualEvents',
    'they are work of the controller that has been done or follows from records',
  ),
]

/**
 * Buckets that are not stores: they contain the stores, derived data, or information about the
 * file.
 */
export const nonStoreBuckets: ReadonlySet<string> = new Set([
  'meta',
  'zdb',
  'index',
  'ziti',
  'ziti/indexes',
  'ziti/metadata',
  'ziti/versions',
])
