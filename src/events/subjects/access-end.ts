import type { AccessEndNotice } from '../../entities/kinds/access-end.ts'
import type { EventSubject, NewEvent } from '../field.ts'

export const accessEndSubject: EventSubject = {
  namespace: 'accessEnd',
  aliases: [],
  about: 'A service policy, or a role attribute of an identity, ends or has ended at its time.',
  typeField: 'event_type',
  types: [
    {
      name: 'approaching',
      emitter: 'every',
      when: 'a day before the end, and an hour before it; not if it was set later than that',
    },
    { name: 'ended', emitter: 'every', when: 'it has ended and gives no access any more' },
  ],
  fields: [
    { name: 'event_type', type: 'string', meaning: 'The type.' },
    { name: 'entity_type', type: 'string', meaning: '`servicePolicies` or `identities`.' },
    { name: 'entity_id', type: 'string', meaning: 'ID of the policy or identity.' },
    { name: 'entity_name', type: 'string', meaning: 'Its name.' },
    {
      name: 'role_attribute',
      type: 'string',
      meaning: 'The role attribute of the identity that ends.',
      isOptional: true,
    },
    { name: 'expires_at', type: 'string', meaning: 'The end, RFC 3339 in UTC.' },
    { name: 'seconds_left', type: 'number', meaning: 'Seconds until the end; 0 if it has ended.' },
  ],
}

export function accessEndEvent(notice: AccessEndNotice, atMs: number): NewEvent {
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
