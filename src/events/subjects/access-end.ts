import type { AccessExpiryNotice } from '../../entities/kinds/access-end.ts'
import type { EventSubject, NewEvent } from '../event-field.ts'

export const accessEndSubject: EventSubject = {
  namespace: 'accessEnd',
  aliases: [],
  about: 'A service policy, or a role attribute of an identity, expires soon or has expired.',
  typeField: 'event_type',
  types: [
    {
      name: 'approaching',
      emitter: 'every',
      when: 'a day before the expiry time, and an hour before it; a notice is left out if the expiry time was set after the notice was due',
    },
    {
      name: 'ended',
      emitter: 'every',
      when: 'the policy or the role attribute has expired and grants no access any more',
    },
  ],
  fields: [
    { name: 'event_type', type: 'string', meaning: 'Type of the event, from the table above.' },
    { name: 'entity_type', type: 'string', meaning: '`servicePolicies` or `identities`.' },
    { name: 'entity_id', type: 'string', meaning: 'ID of the policy or identity.' },
    { name: 'entity_name', type: 'string', meaning: 'Name of the policy or identity.' },
    {
      name: 'role_attribute',
      type: 'string',
      meaning: 'The expiring role attribute of the identity; absent for a policy.',
      isOptional: true,
    },
    { name: 'expires_at', type: 'string', meaning: 'The expiry time, RFC 3339 in UTC.' },
    { name: 'seconds_left', type: 'number', meaning: 'Seconds until the expiry time; 0 after it.' },
  ],
}

export function accessEndEvent(notice: AccessExpiryNotice, atMs: number): NewEvent {
  const { type, kind, id, name, attribute, expiresAt } = notice
  return {
    namespace: 'accessEnd',
    atMs,
    weight: 256 + name.length + attribute.length,
    fields: () => ({
      event_type: type,
      entity_type: kind === 'identity' ? 'identities' : 'servicePolicies',
      entity_id: id,
      entity_name: name,
      ...(attribute === '' ? {} : { role_attribute: attribute }),
      expires_at: new Date(expiresAt).toISOString(),
      seconds_left: Math.max(0, Math.round((expiresAt - atMs) / 1000)),
    }),
  }
}
