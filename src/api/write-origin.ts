import { assert } from '../lib/assert.ts'
import type { Actor } from '../ports/actor.ts'
import { neededOn } from './auth/permissions.ts'
import type { RequestContext } from './call.ts'
import type { Idempotency, WriteOrigin } from './records/writes.ts'

/**
 * The origin of the writes of a request.
 * @param actor of a write that no session asks for; else the caller in its session.
 */
export function originOf(call: RequestContext, actor: Actor = actorOf(call)): WriteOrigin {
  return {
    actor,
    trace: call.trace,
    idempotency: idempotencyOf(call),
    isAbandoned: () => call.isAbandoned,
    onProposed: (mayTakeEffect) => {
      call.hasProposed = mayTakeEffect
    },
    onOutcome: (index) => {
      call.index = Math.max(call.index, index)
    },
  }
}

export function idempotencyOf(call: RequestContext): Idempotency {
  if (!call.isRepeatable) return { case: 'notKept' }
  if (call.netRequestId === null) return { case: 'none' }
  return { case: 'id', id: call.netRequestId.bytes, bodyHash: () => call.bodyHash() }
}

/**
 * Who asks, as the log is to have it.
 * @throws {AssertionError} for a call that no session was asked for: what is written for it has
 * another actor.
 */
export function actorOf({ caller, operation, api, address }: RequestContext): Actor {
  if (caller?.system !== undefined) return caller.system
  assert(
    caller !== null && operation !== null && operation.permission !== 'public',
    'a write of a call has a session, and the permission that it was admitted by',
  )
  const permission = neededOn(api, operation.permission)
  const [identityId, sessionId] = [caller.identity.id, caller.session.id]
  const { signerId = '', signerRevision = 0 } = caller.token ?? {}
  const shown = { signerId, signerRevision: String(signerRevision) }
  return { case: 'session', value: { identityId, sessionId, address, permission, ...shown } }
}
