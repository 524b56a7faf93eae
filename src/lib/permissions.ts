const actions = ['read', 'create', 'update', 'delete'] as const

/**
 * The kinds of records and decisions that a write with a permission can affect beyond the written
 * record. The order is from the widest effect to the narrowest.
 */
export const permissionEffectScopes = [
  'administrator',
  'logIns',
  'identities',
  'routers',
  'services',
  'posture',
  'running',
  'invited',
  'records',
] as const
type PermissionReach = (typeof permissionEffectScopes)[number]

/**
 * The widest effect of each action, in the order of `actions`. The program does not compile if an
 * action of a kind has none.
 */
type Reaches = readonly [PermissionReach, PermissionReach, PermissionReach, PermissionReach]
const writes = (reach: PermissionReach, ofReads: PermissionReach = 'records'): Reaches => [
  ofReads,
  reach,
  reach,
  'records',
]

/**
 * Permissions that an identity without administrator rights may have; `controllers` can only be
 * read, and `ops` cannot be created. docs/operate/permissions.md lists the widest effect of each
 * permission, and a test compares that page with this table.
 */
const reachesOfKinds = {
  'auth-policy': writes('logIns'),
  ca: writes('administrator'),
  config: writes('services'),
  'config-type': ['records', 'records', 'services', 'records'],
  'edge-router-policy': writes('routers'),
  enrollment: writes('identities', 'invited'),
  'external-jwt-signer': writes('administrator'),
  identity: writes('identities', 'invited'),
  'posture-check': ['records', 'posture', 'posture', 'posture'],
  router: writes('routers', 'invited'),
  service: writes('services'),
  'service-edge-router-policy': writes('services'),
  'service-policy': writes('services'),
  terminator: writes('services'),
} as const satisfies Readonly<Record<string, Reaches>>
/** `running`: sessions, circuits and links, also those of administrators. */
const reachesOfOps: Reaches = ['records', 'records', 'running', 'running']
const kinds = Object.keys(reachesOfKinds) as readonly (keyof typeof reachesOfKinds)[]
/**
 * Kinds whose permissions cannot be granted: operations that need them require an administrator,
 * except that `admin_readonly` covers reading.
 */
const adminKinds = ['authenticator', 'controller-setting', 'revocation'] as const

type PermissionKind = (typeof kinds)[number] | (typeof adminKinds)[number] | 'controllers' | 'ops'

/**
 * Permissions that an operation may require of a session. The API admits a session to an operation
 * only if the session has one of these.
 */
export type SessionPermission =
  | 'partial'
  | 'session'
  | 'admin'
  | `${PermissionKind}.${(typeof actions)[number]}`

const sessionPermissions: ReadonlySet<string> = new Set([
  'partial',
  'session',
  'admin',
  ...[...kinds, ...adminKinds, 'controllers', 'ops'].flatMap((kind) =>
    actions.map((action) => `${kind}.${action}`),
  ),
])

export function isSessionPermission(text: unknown): text is SessionPermission {
  return typeof text === 'string' && sessionPermissions.has(text)
}

export const grantablePermissions: readonly string[] = [
  'admin_readonly',
  'controllers',
  'controllers.read',
  'ops',
  'ops.read',
  'ops.update',
  'ops.delete',
  ...kinds.flatMap((kind) => [kind, ...actions.map((action) => `${kind}.${action}`)]),
].sort()

const grantable: ReadonlySet<string> = new Set(grantablePermissions)
const READ_EVERYTHING = 'admin_readonly'

/**
 * The widest effect of a grantable permission. A permission for a whole kind has the widest effect
 * of all actions of that kind.
 */
export function permissionEffectScope(permission: string): PermissionReach {
  const [kind = '', action] = permission.split('.')
  const known: Readonly<Record<string, Reaches>> = { ...reachesOfKinds, ops: reachesOfOps }
  const reaches = known[kind]
  if (permission === READ_EVERYTHING) {
    return furthest(Object.values(known).map(([ofReads]) => ofReads))
  }
  if (reaches === undefined) return 'records'
  const at = actions.findIndex((name) => name === action)
  return reaches[at] ?? furthest(reaches)
}

function furthest(reaches: readonly PermissionReach[]): PermissionReach {
  return permissionEffectScopes.find((reach) => reaches.includes(reach)) ?? 'records'
}

/**
 * Whether the granted permissions cover an operation that needs `permission` (`<kind>.<action>`).
 * Actions do not imply each other. A permission that cannot be granted is covered only by
 * `admin_readonly` and only for reading, even if a record lists it.
 * @param isRead true if the request neither changes nor starts anything; `admin_readonly` covers
 * only such requests.
 */
export function isGranted(held: readonly string[], permission: string, isRead: boolean): boolean {
  if (isRead && permission.endsWith('.read') && held.includes(READ_EVERYTHING)) return true
  if (!grantable.has(permission)) return false
  return held.includes(permission) || held.includes(permission.slice(0, permission.indexOf('.')))
}
