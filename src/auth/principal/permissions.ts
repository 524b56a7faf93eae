import {
  grantablePermissions,
  isGranted,
  isSessionPermission,
  type SessionPermission,
} from '../../lib/permissions.ts'
import { identityActionRefusalReason } from '../../fsm/apply/actor-rights.ts'
import { Problem } from '../../lib/problems.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { SessionWithIdentity, SessionPrincipal } from './principal.ts'

/**
 * `host`: operations at the root of the listener, outside of the APIs, such as health checks;
 * `oidc`: the OpenID provider.
 */
export type ApiName = 'client' | 'management' | 'fabric' | 'host' | 'oidc'

/**
 * Permission that an operation requires. `public`: any caller; the controller reads no session.
 * `partial`: any identity with a session, even if the session lacks a second factor. `session`: any
 * identity with a fully authenticated session. `admin`: an administrator with such a session.
 * `<kind>.<action>`: administrators, and identities with this permission. All other callers receive
 * 401 UNAUTHORIZED, as in OpenZiti.
 */
export type Permission = 'public' | SessionPermission

export function isPermission(text: unknown): text is Permission {
  return text === 'public' || isSessionPermission(text)
}

/** The properties of an operation that determine which permission it requires. */
export interface CalledOperation {
  readonly api: ApiName
  readonly method: string
  /**
   * True: the operation counts as a read although its method is not GET, because it changes and
   * starts nothing.
   */
  readonly changesNothing?: boolean | undefined
}

/**
 * Permission that an operation requires on one API. Identities can use a `<kind>.<action>`
 * permission only on the management API; `ops` permissions also apply to the fabric API, which has
 * the circuits and links. On every other API, such an operation requires an administrator.
 */
export function permissionOnApi<P extends Permission>(api: ApiName, permission: P): P | 'admin' {
  if (!permission.includes('.')) return permission
  if (api === 'management' || (api === 'fabric' && permission.startsWith('ops.'))) return permission
  return 'admin'
}

/**
 * Whether a caller may call an operation. Depends on the caller's current record and on the second
 * factors that the caller's session lacks.
 */
export function canCallOperation(
  caller: Pick<SessionWithIdentity, 'identity' | 'isAdmin' | 'pendingFactors'>,
  permission: Permission,
  { api, method, changesNothing }: CalledOperation,
): boolean {
  const needed = permissionOnApi(api, permission)
  if (needed === 'public' || needed === 'partial') return true
  if (caller.pendingFactors.length > 0) return false
  if (caller.isAdmin) return true
  if (needed === 'admin') return false
  if (needed === 'session') return true
  return isGranted(caller.identity.permissions, needed, method === 'GET' || changesNothing === true)
}

/**
 * A sentence that names the permission which a refused caller lacks, so that the caller can request
 * it from an administrator. Null if the session lacks a second factor, or if every fully
 * authenticated session may call the operation.
 */
export function missingPermissionText({
  permission,
  pendingFactors,
}: Pick<SessionPrincipal, 'permission' | 'pendingFactors'>): string | null {
  if (pendingFactors.length > 0) return null
  if (permission === 'admin') return 'the operation is for administrators'
  if (!permission.includes('.')) return null
  const isGrantable = grantablePermissions.includes(permission)
  return isGrantable
    ? `the operation needs the permission ${permission}`
    : 'the operation is for administrators'
}

/**
 * Checks the permissions for an action that concerns an identity and writes nothing; for actions
 * that write, the state machine makes this check.
 * @throws {Problem} UNAUTHORIZED when that identity has a permission that the caller lacks.
 */
export function requireRightsOverIdentity(
  records: Pick<StateView, 'get'>,
  caller: Pick<SessionWithIdentity, 'identity' | 'isAdmin'>,
  identityId: string,
): void {
  if (caller.isAdmin) return
  const detail = identityActionRefusalReason(records, identityId, caller.identity.permissions)
  // @guard privilege-escalation--unlogged
  if (detail !== null) throw new Problem('UNAUTHORIZED', { detail })
}
