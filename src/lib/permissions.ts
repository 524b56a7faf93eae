/**
 * What an identity that is no administrator may be given; `controllers` can only be read, `ops` not
 * created. To write a `ca` or an `external-jwt-signer` is as good as to be one: SECURITY.md.
 */
const kinds = [
  'auth-policy',
  'ca',
  'config',
  'config-type',
  'edge-router-policy',
  'enrollment',
  'external-jwt-signer',
  'identity',
  'posture-check',
  'router',
  'service',
  'service-edge-router-policy',
  'service-policy',
  'terminator',
] as const
/** No identity is given these: operations that need them are an administrator's. */
const adminKinds = ['authenticator', 'controller-setting', 'revocation'] as const
const actions = ['read', 'create', 'update', 'delete'] as const

type PermissionKind = (typeof kinds)[number] | (typeof adminKinds)[number] | 'controllers' | 'ops'

/**
 * What an operation behind a session may ask for, so the only permissions that a session is ever
 * admitted by.
 */
export type SessionPermission =
  | 'partial'
  | 'session'
  | 'admin'
  | `${PermissionKind}.${(typeof actions)[number]}`

const sessionPermissions: ReadonlySet<string> = new Set([
  ...['partial', 'session', 'admin'],
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
 * Whether what an identity was given covers an operation that needs `permission`
 * (`<kind>.<action>`). Actions do not imply each other, and what can not be granted is never
 * covered, whatever a record says.
 * @param isRead the request changes nothing and starts nothing: `admin_readonly` covers no other.
 */
export function isGranted(held: readonly string[], permission: string, isRead: boolean): boolean {
  if (isRead && permission.endsWith('.read') && held.includes(READ_EVERYTHING)) return true
  if (!grantable.has(permission)) return false
  return held.includes(permission) || held.includes(permission.slice(0, permission.indexOf('.')))
}
