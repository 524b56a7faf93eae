import {
  grantablePermissions,
  isGranted,
  isSessionPermission,
  type SessionPermission,
} from '../../lib/permissions.ts'
import { reachRefusalReason } from '../../fsm/apply/authority.ts'
import { Problem } from '../../lib/problems.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { SessionHolder, SessionPrincipal } from './principal.ts'

/** `host`: at the root of the listener, beside the APIs; `oidc`: the OpenID provider. */
export type ApiName = 'client' | 'management' | 'fabric' | 'host' | 'oidc'

/**
 * Permission of an operation. `public`: anybody, no session is looked at. `partial`: any identity
 * with a session, also while that lacks a second factor. `session`: any identity with a full
 * session. `admin`: an identity with isAdmin, in a full session, too. `<kind>.<action>`: also one
 * that was given it (principal/permissions.ts). Others get 401 UNAUTHORIZED, as in the whole API
 * family.
 */
export type Permission = 'public' | SessionPermission

export function isPermission(text: unknown): text is Permission {
  return text === 'public' || isSessionPermission(text)
}

/** An operation as permissions are judged for it. */
export interface CalledOperation {
  readonly api: ApiName
  readonly method: string
  /** It counts as a read though its method is none: nothing is changed and nothing is started. */
  readonly changesNothing?: boolean | undefined
}

/**
 * Permission that an operation requires on that API. Permissions of identities hold on the
 * management API alone, but for `ops`, whose circuits and links are on the fabric API; everything
 * else there and elsewhere is for administrators.
 */
export function permissionOnApi<P extends Permission>(api: ApiName, permission: P): P | 'admin' {
  if (!permission.includes('.')) return permission
  if (api === 'management' || (api === 'fabric' && permission.startsWith('ops.'))) return permission
  return 'admin'
}

/**
 * Whether a caller may call an operation, by its current record and the factors its session lacks.
 */
export function mayCall(
  caller: Pick<SessionHolder, 'identity' | 'isAdmin' | 'pendingFactors'>,
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
 * Names the permission that a refused caller lacks, so that it can ask for it. Null while a second
 * factor is missing, and for an operation that every full session may call.
 */
export function missingPermission({
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
 * For actions on an identity that are no write, because apply judges only writes.
 * @throws {Problem} UNAUTHORIZED when that identity may do what the caller may not.
 */
export function requireReach(
  records: Pick<StateView, 'get'>,
  caller: Pick<SessionHolder, 'identity' | 'isAdmin'>,
  identityId: string,
): void {
  if (caller.isAdmin) return
  const detail = reachRefusalReason(records, identityId, caller.identity.permissions)
  // @guard privilege-escalation--unlogged
  if (detail !== null) throw new Problem('UNAUTHORIZED', { detail })
}
