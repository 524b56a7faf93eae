import { grantablePermissions } from './identity.ts'

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
