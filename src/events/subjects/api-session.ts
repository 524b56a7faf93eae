import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { EventSubject, NewEvent } from '../event-field.ts'

export const apiSessionSubject: EventSubject = {
  namespace: 'apiSession',
  aliases: ['edge.apiSessions'],
  about: 'An API session was opened or has ended.',
  typeField: 'event_type',
  types: [
    { name: 'created', emitter: 'every', when: 'a session was opened' },
    { name: 'deleted', emitter: 'every', when: 'a session has ended, for any reason' },
  ],
  fields: [
    { name: 'event_type', type: 'string', meaning: 'Type of the event, from the table above.' },
    { name: 'id', type: 'string', meaning: 'ID of the session; not its token.' },
    { name: 'type', type: 'string', meaning: '`jwt` for an OIDC session, otherwise `legacy`.' },
    { name: 'token', type: 'string', meaning: 'Always empty: tokens are never emitted.' },
    { name: 'identity_id', type: 'string', meaning: 'ID of the identity that opened the session.' },
    {
      name: 'ip_address',
      type: 'string',
      meaning: 'IP address from which the session was opened.',
    },
    { name: 'cert_generated', type: 'boolean', meaning: 'Always false.' },
  ],
}

export function apiSessionEvent(
  type: 'created' | 'deleted',
  session: ApiSession,
  atMs: number,
): NewEvent {
  const { id, identityId, ipAddress, clientId } = session
  return {
    namespace: 'apiSession',
    atMs,
    weight: 256,
    fields: () => ({
      event_type: type,
      id,
      type: clientId ? 'jwt' : 'legacy',
      token: '',
      identity_id: identityId,
      ip_address: ipAddress,
      cert_generated: false,
    }),
  }
}
