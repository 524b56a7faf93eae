/**
 * Kinds in permission names, for collections where the kind is not the singular of the collection's
 * name.
 */
const kinds: Readonly<Record<string, string>> = {
  'api-sessions': 'ops',
  sessions: 'ops',
  'auth-policies': 'auth-policy',
  cas: 'ca',
  controllers: 'controllers',
  'edge-router-policies': 'edge-router-policy',
  'edge-routers': 'router',
  identities: 'identity',
  'service-edge-router-policies': 'service-edge-router-policy',
  'service-policies': 'service-policy',
  'transit-routers': 'router',
}

const actions: Readonly<Record<string, string>> = {
  get: 'read',
  post: 'create',
  put: 'update',
  patch: 'update',
  delete: 'delete',
}

function kindOf(collection: string): string {
  return kinds[collection] ?? collection.replace(/s$/, '')
}

const publicPaths =
  /^\/(|version|enumerated-(router-)?capabilities|specs.*|network-jwts|openapi\.json|swagger\.json|protocols|\.well-known\/.*|authenticate|enroll(\/.*)?)$/
/**
 * Operations of each edge API for a session that lacks a second factor: they show the missing
 * factor, provide it, or end the session.
 */
export const openToPartial: readonly string[] = [
  'DELETE /current-api-session',
  'GET /current-api-session',
  'GET /current-identity/mfa',
  'GET /current-identity/mfa/qr-code',
  'POST /authenticate/mfa',
  'POST /current-identity/mfa',
  'POST /current-identity/mfa/verify',
]
const ownPaths =
  /^\/(current-.*|identity-types.*|posture-check-types.*|authenticators\/\{id\}\/extend-verify|controllers|summary)$/
const adminPaths = /^\/database\/.*$/
/**
 * Collections below a record for which the permission for the listed kind counts, not that for the
 * record.
 */
const ofListedKind: Readonly<Record<string, string>> = { 'policy-advice': 'service' }
/**
 * Collections below a record that belong to the record, so that the permission for the record
 * counts.
 */
const ofRecord = /^(service-configs|posture-data|failed-service-requests|jwt|route-path|effective)$/

/** Operations that only Flotilla has. */
const own: Readonly<Record<string, string>> = {
  'get /access/explain': 'service.read',
  'post /access/preview': 'identity.read',
  'post /jwt-signer-setup/discover': 'admin',
  'post /jwt-signer-setup/test': 'admin',
  // Each response contains only records of kinds that the caller may read.
  'get /history': 'session',
  'get /history/{index}': 'session',
  'get /history/{index}/undo': 'session',
  'post /history/{index}/undo': 'session',
  'get /roles/identities': 'identity.read',
  'get /roles/services': 'service.read',
  'get /roles/edge-routers': 'router.read',
  'get /roles/posture-checks': 'posture-check.read',
  'get /traffic/routers': 'router.read',
  'get /traffic/routers/{id}': 'router.read',
  'get /traffic/services': 'service.read',
  'get /traffic/services/{id}': 'service.read',
}

/**
 * The permission that an operation of the management API requires, derived only from its method and
 * path; `public`, `partial` or `session` if it requires no permission. Except for the operations in
 * `own`, OpenZiti requires the same.
 */
export function neededFor(method: string, path: string): string {
  const ofOurs = own[`${method} ${path}`]
  if (ofOurs !== undefined) return ofOurs
  if (publicPaths.test(path)) return 'public'
  if (openToPartial.includes(`${method.toUpperCase()} ${path}`)) return 'partial'
  if (ownPaths.test(path)) return 'session'
  if (adminPaths.test(path)) return 'admin'
  const [collection = '', , below] = path.slice(1).split('/')
  const attributes = /^(.*)-role-attribute(s|-usage)$/.exec(collection)
  if (attributes !== null) return `${kindOf(`${attributes[1] ?? ''}s`)}.read`
  if (below === undefined) return `${kindOf(collection)}.${actions[method] ?? ''}`
  const listed = ofListedKind[below]
  if (listed !== undefined) return `${listed}.read`
  // Settings of one controller override those for all controllers; deleting them restores the
  // latter.
  if (below === 'effective' && method === 'delete') return `${kindOf(collection)}.delete`
  if (method !== 'get') return `${kindOf(collection)}.update`
  return `${kindOf(ofRecord.test(below) ? collection : below)}.read`
}
