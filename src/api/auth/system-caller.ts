import type { IncomingMessage } from 'node:http'

import { Problem } from '../../lib/problems.ts'
import { type Actor, actorName } from '../../ports/actor.ts'
import type { Caller } from '../call.ts'
import type { Operation } from '../operation.ts'

/** No record has an empty id, so nothing in the state is ever taken for this caller's. */
const nobody = { id: '', createdAt: 0, updatedAt: 0, revision: 0 }

/** Who asks at the admin socket, by what a request there says. */
export type SocketCaller = (request: IncomingMessage) => Actor

/**
 * By the listener alone: what a request says, and where it seems to come from, makes nobody the
 * user of the host.
 * @returns null at every other listener.
 * @throws {Problem} for what a caller does with its own identity or session, as there is none.
 */
export function systemCallerAt(
  said: SocketCaller | null,
  raw: IncomingMessage,
  operation: Pick<Operation, 'permission'>,
): Caller | null {
  if (said !== null) requireNoSession(operation)
  return said === null ? null : systemCaller(said(raw))
}

/** Whoever runs the host of this controller: an administrator without identity and session. */
function systemCaller(actor: Actor): Caller {
  const identity = { ...nobody, name: actorName(actor) }
  return { session: nobody, identity, isAdmin: true, pendingFactors: [], system: actor }
}

function requireNoSession({ permission }: Pick<Operation, 'permission'>): void {
  if (permission !== 'session' && permission !== 'partial') return
  throw new Problem('INVALID_BACKING_TOKEN_TYPE', {
    detail:
      'this operation is about the session of its caller, and the admin socket has none; log in and send net-session',
  })
}

/**
 * Operations that are asked at the admin socket alone, and why: with each of them, a session that
 * was stolen would be worth as much as the host of a controller. The only list of them.
 */
export const socketOnly: Readonly<Record<string, string>> = {
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

export function isSocketOnly({ operationId }: Operation): boolean {
  return Object.hasOwn(socketOnly, operationId)
}

/** @throws {Problem} ADMIN_SOCKET_ONLY for one of those. */
export function requireNotSocketOnly(operation: Operation): void {
  if (!isSocketOnly(operation)) return
  throw new Problem('ADMIN_SOCKET_ONLY', {
    detail: `${socketOnly[operation.operationId] ?? ''}; use the admin socket of a controller, without a session`,
  })
}
