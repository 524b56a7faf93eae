import type { EventSubject, NewEvent } from '../event-field.ts'

export const entityCountSubject: EventSubject = {
  namespace: 'entityCount',
  aliases: ['edge.entityCounts'],
  about: 'Number of records of each kind.',
  typeField: null,
  types: [
    {
      name: 'entityCount',
      emitter: 'leader',
      when: 'every `events.entityCountIntervalMs` while anyone subscribes to these events',
    },
  ],
  fields: [
    { name: 'counts', type: 'object', meaning: 'Number of records, by kind in the plural.' },
    { name: 'error', type: 'string', meaning: 'Never present.', isOptional: true },
  ],
}

export function entityCountEvent(counts: Readonly<Record<string, number>>, atMs: number): NewEvent {
  return { namespace: 'entityCount', atMs, weight: 768, fields: () => ({ counts }) }
}
