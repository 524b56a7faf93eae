import type { Session } from '../../entities/kinds/session.ts'
import { parseUuid } from '../../lib/text/uuid.ts'
import type { EventSubject, NewEvent } from '../event-field.ts'

export const sessionSubject: EventSubject = {
  namespace: 'session',
  aliases: ['edge.sessions'],
  about:
    'A service session, which lets an identity dial or host a service, was created or has ended.',
  typeField: 'event_type',
  types: [
    { name: 'created', emitter: 'every', when: 'a service session was opened' },
    { name: 'deleted', emitter: 'every', when: 'a service session ended' },
  ],
  fields: [
    { name: 'event_type', type: 'string', meaning: 'Type of the event, from the table above.' },
    { name: 'session_type', type: 'string', meaning: '`Dial` or `Bind`.' },
    {
      name: 'provider',
      type: 'string',
      meaning: '`jwt` if the API session is an OIDC session, otherwise `legacy`.',
    },
    { name: 'id', type: 'string', meaning: 'ID of the service session, not its token.' },
    {
      name: 'api_session_id',
      type: 'string',
      meaning: 'ID of the API session in which the service session was opened.',
    },
    { name: 'identity_id', type: 'string', meaning: 'ID of the identity.' },
    { name: 'service_id', type: 'string', meaning: 'ID of the service.' },
  ],
}

export function sessionEvent(type: 'created' | 'deleted', of: Session, atMs: number): NewEvent {
  // Only OIDC sessions have a UUID as id. So the id shows the kind of the API session, even if its
  // record was already deleted.
  const isOfOidc = parseUuid(of.apiSessionId) !== null
  return {
    namespace: 'session',
    atMs,
    weight: 256,
    fields: () => ({
      event_type: type,
      session_type: of.type,
      provider: isOfOidc ? 'jwt' : 'legacy',
      id: of.id,
      api_session_id: of.apiSessionId,
      identity_id: of.identityId,
      service_id: of.serviceId,
    }),
  }
}
