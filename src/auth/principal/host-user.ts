import { zeroRecord } from '../../entities/define-entity.ts'
import { apiSession } from '../../entities/kinds/api-session.ts'
import { identity as identityKind } from '../../entities/kinds/identity.ts'
import { Problem } from '../../lib/problems.ts'
import { type Actor, actorName } from '../../ports/actor.ts'
import type { Permission } from './permissions.ts'
import type { CallerCredentials } from './credentials.ts'
import type { HostUser } from './principal.ts'

// The host user has no session. No record in the state has an empty id, so none can be mistaken for
// this session.
const noSession = zeroRecord(apiSession, '')
const nobody = zeroRecord(identityKind, '')

/**
 * Admits the user of the controller's host because the request arrived at the admin socket, never
 * because of its content or source address. A request with a session token has the rights of its
 * session, so a proxy in front of the admin socket gives its clients no additional rights.
 * @returns null at every other listener, and with a session token.
 * @throws {Problem} for an operation on the caller's own identity or session, because the host user
 * has neither.
 */
export function admitHostUser(
  { hostUser, sessionToken }: Pick<CallerCredentials, 'hostUser' | 'sessionToken'>,
  permission: Permission,
): HostUser | null {
  // @guard system-caller-over-tcp--session
  if (hostUser === null || sessionToken !== undefined) return null
  requireNoSession(permission)
  return newHostUser(hostUser())
}

/** An administrator without an identity record and without a session. */
function newHostUser(actor: Actor): HostUser {
  const identity = { ...nobody, name: actorName(actor) }
  return {
    kind: 'hostUser',
    session: noSession,
    identity,
    isAdmin: true,
    pendingFactors: [],
    actor,
  }
}

function requireNoSession(permission: Permission): void {
  if (permission !== 'session' && permission !== 'partial') return
  throw new Problem('INVALID_BACKING_TOKEN_TYPE', {
    detail:
      'this operation is about the session of its caller, and the admin socket has none; log in and send net-session',
  })
}

/**
 * Operations that only the admin socket serves, with the reasons. This is the only such list. If
 * other listeners also served these operations, a thief of a session token could do everything that
 * a user of the controller's host can.
 */
export const adminSocketOnlyOperations: Readonly<Record<string, string>> = {
  clusterBackup: 'a backup contains the keys of the cluster',
  clusterRecoverAdmin: 'it sets the password of an administrator without any credential',
  clusterResetLogTime: 'it moves the time by which everything ends',
  clusterRestoreBegin: 'it replaces every record of the network',
  clusterRestoreChunk: 'it replaces every record of the network',
  clusterRestoreEnd: 'it replaces every record of the network',
  clusterRestoreFactors: 'it encrypts any value as the second factor of an identity',
  pkiInstallIssuing: 'it changes the CA that controllers, routers and clients trust',
  pkiIssue: 'it issues a certificate for any host',
  pkiRenewMember: 'it issues the certificate of a controller',
}

interface NamedOperation {
  readonly operationId: string
}

/** Whether only the host user, at the admin socket, may call the operation. */
export function isAdminSocketOnly({ operationId }: NamedOperation): boolean {
  return Object.hasOwn(adminSocketOnlyOperations, operationId)
}

/** @throws {Problem} ADMIN_SOCKET_ONLY if only the host user may call the operation. */
export function refuseAdminSocketOnly(operation: NamedOperation): void {
  // @guard system-caller-over-tcp--socket-only
  if (!isAdminSocketOnly(operation)) return
  throw new Problem('ADMIN_SOCKET_ONLY', {
    detail: `${adminSocketOnlyOperations[operation.operationId] ?? ''}; use the admin socket of a controller, without a session`,
  })
}
