import type { ApiSession } from '../../entities/api-session.ts'
import type { EventSubject, NewEvent } from '../field.ts'

export const apiSession: EventSubject = {
  namespace: 'apiSession',
  aliases: ['edge.apiSessions'],
  about: 'Somebody logged in, or is no longer.',
  typeField: 'event_type',
  types: [
    { name: 'created', emitter: 'every', when: 'a session was opened' },
    { name: 'deleted', emitter: 'every', when: 'it was ended, by whatever' },
  ],
  fields: [
    { name: 'event_type', type: 'string', meaning: 'The type.' },
    { name: 'id', type: 'string', meaning: 'Of the session; it is no token.' },
    { name: 'type', type: 'string', meaning: 'Always `legacy`: the session is kept in the state.' },
    { name: 'token', type: 'string', meaning: 'Always empty: a token is never told.' },
    { name: 'identity_id', type: 'string', meaning: 'Whose it is.' },
    { name: 'ip_address', type: 'string', meaning: 'Where it was opened from.' },
    { name: 'cert_generated', type: 'boolean', meaning: 'Always false.' },
  ],
}

export function apiSessionEvent(
  type: 'created' | 'deleted',
  session: ApiSession,
  atMs: number,
): NewEvent {
  const { id, identityId, ipAddress } = session
  return {
    namespace: 'apiSession',
    atMs,
    weight: 256,
    fields: () => ({
      ...{ event_type: type, id, type: 'legacy', token: '', identity_id: identityId },
      ...{ ip_address: ipAddress, cert_generated: false },
    }),
  }
}
