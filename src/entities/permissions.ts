/**
 * What an identity that is no administrator may be given; `controllers` can only be read, `ops` not created. To write a `ca` or an
 * `external-jwt-signer` is as good as to be one: SECURITY.md.
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
export const grantablePermissions: readonly string[] = [
  'admin_readonly',
  'controllers',
  'controllers.read',
  'ops',
  'ops.read',
  'ops.update',
  'ops.delete',
  ...kinds.flatMap((kind) => [
    kind,
    ...['read', 'create', 'update', 'delete'].map((action) => `${kind}.${action}`),
  ]),
].sort()

const grantable: ReadonlySet<string> = new Set(grantablePermissions)
const READ_EVERYTHING = 'admin_readonly'

/**
 * Whether what an identity was given covers an operation that needs `permission` (`<kind>.<action>`). Actions do not
 * imply each other, and what can not be granted is never covered, whatever a record says.
 * @param isRead the request changes nothing and starts nothing: `admin_readonly` covers no other.
 */
export function isGranted(held: readonly string[], permission: string, isRead: boolean): boolean {
  if (isRead && permission.endsWith('.read') && held.includes(READ_EVERYTHING)) return true
  if (!grantable.has(permission)) return false
  return held.includes(permission) || held.includes(permission.slice(0, permission.indexOf('.')))
}
