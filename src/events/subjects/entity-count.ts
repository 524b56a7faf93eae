import type { EventSubject, NewEvent } from '../field.ts'

export const entityCount: EventSubject = {
  namespace: 'entityCount',
  aliases: ['edge.entityCounts'],
  about: 'How many records of each kind there are.',
  typeField: null,
  types: [
    {
      name: 'entityCount',
      emitter: 'leader',
      when: 'every `events.entityCountIntervalMs` while they have a subscriber',
    },
  ],
  fields: [
    { name: 'counts', type: 'object', meaning: 'By kind, in the plural.' },
    { name: 'error', type: 'string', meaning: 'Never there.', isOptional: true },
  ],
}

export function entityCountEvent(counts: Readonly<Record<string, number>>, atMs: number): NewEvent {
  return { namespace: 'entityCount', atMs, weight: 768, fields: () => ({ counts }) }
}
