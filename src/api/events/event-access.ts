import type { EventNamespace } from '../../lib/event-namespaces.ts'
import { Problem, type ProblemCode } from '../../lib/problems.ts'
import { type EventReader, type EventStreams, RECORD_NAMESPACES } from '../../ports/events.ts'
import { canCallOperation, type CalledOperation } from '../../auth/principal/permissions.ts'
import type { Caller } from '../../auth/principal/principal.ts'
import type { RequestAuthenticator } from '../../auth/sessions/request-authenticator.ts'

interface ReaderOfDeps {
  readonly events: EventStreams
  readonly refusal: () => ProblemCode | null
  readonly gate: RequestAuthenticator
}

/**
 * Permission to read events. Events about records and users additionally require an administrator.
 */
export const EVENTS_PERMISSION = 'ops.read'

/** Whether the caller may see events of a namespace. */
export function canSeeEvents(
  caller: Caller,
  wanted: CalledOperation,
  namespace: EventNamespace,
): boolean {
  // @guard events-of-others--records
  return !RECORD_NAMESPACES.has(namespace) || canCallOperation(caller, 'admin', wanted)
}

/**
 * Creates the reader of an event stream. The reader's session is checked repeatedly while the
 * stream is open.
 * @param isOfRecords returns whether the stream contains events about records; it returns false
 * until a WebSocket client has sent its request.
 * @throws {Problem} SERVER_TOO_MANY_REQUESTS when there are too many streams.
 */
export function createEventReader(
  caller: Caller,
  wanted: CalledOperation,
  deps: ReaderOfDeps,
  isOfRecords: () => boolean,
): Omit<EventReader, 'after' | 'filter'> {
  const identityId = caller.identity.id
  if (!deps.events.hasRoomFor(identityId)) {
    throw new Problem('SERVER_TOO_MANY_REQUESTS', {
      detail: 'too many open event streams, of this identity or in total; close one',
    })
  }
  return {
    identityId,
    refusal: () => {
      // The state of a quarantined controller may be wrong, so it must not send events.
      if (deps.refusal() === 'NODE_QUARANTINED') return 'this controller is out of service'
      return deps.gate.endReason(caller, {
        ...wanted,
        permission: isOfRecords() ? 'admin' : EVENTS_PERMISSION,
      })
    },
  }
}
