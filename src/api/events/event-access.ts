import type { EventNamespace } from '../../lib/event-namespaces.ts'
import { Problem } from '../../lib/problems.ts'
import { type EventReader, RECORD_NAMESPACES } from '../../ports/events.ts'
import { mayCall, type CalledOperation } from '../../auth/principal/permissions.ts'
import type { Caller } from '../../auth/principal/principal.ts'
import type { ApiParts } from '../parts.ts'
import type { ApiServices } from '../records/services.ts'

/**
 * What an identity needs to read events at all; those of records and people need an administrator.
 */
export const EVENTS_PERMISSION = 'ops.read'

/** Whether the caller may see events of a namespace. */
export function maySee(
  caller: Caller,
  wanted: CalledOperation,
  namespace: EventNamespace,
): boolean {
  return !RECORD_NAMESPACES.has(namespace) || mayCall(caller, 'admin', wanted)
}

/**
 * Who reads, and until when: the session is judged again and again while a stream stands.
 * @param namespaces asked for already; none of a web socket that has not asked yet.
 * @throws {Problem} SERVER_TOO_MANY_REQUESTS when there are too many streams.
 */
export function readerOf(
  caller: Caller,
  wanted: CalledOperation,
  parts: Pick<ApiParts, 'events' | 'refusal'>,
  services: Pick<ApiServices, 'gate'>,
  isOfRecords: () => boolean,
): Omit<EventReader, 'after' | 'filter'> {
  const identityId = caller.identity.id
  if (!parts.events.hasRoomFor(identityId)) {
    throw new Problem('SERVER_TOO_MANY_REQUESTS', {
      detail: 'too many open event streams, of this identity or in total; close one',
    })
  }
  return {
    identityId,
    refusal: () => {
      // What this controller would tell may be wrong.
      if (parts.refusal() === 'NODE_QUARANTINED') return 'this controller is out of service'
      return services.gate.endReason(caller, {
        ...wanted,
        permission: isOfRecords() ? 'admin' : EVENTS_PERMISSION,
      })
    },
  }
}
