import type { EventSubject, NewEvent } from '../event-field.ts'

export const routerSubject: EventSubject = {
  namespace: 'router',
  aliases: ['fabric.routers'],
  about: 'A router connected to this controller or disconnected from it.',
  typeField: 'event_type',
  types: [
    {
      name: 'router-online',
      emitter: 'observer',
      when: 'the channel of the router to this controller is open',
    },
    {
      name: 'router-offline',
      emitter: 'observer',
      when: 'the channel of the router to this controller is closed',
    },
  ],
  fields: [
    { name: 'event_type', type: 'string', meaning: 'Type of the event, from the table above.' },
    { name: 'router_id', type: 'string', meaning: 'ID of the router.' },
    {
      name: 'router_online',
      type: 'boolean',
      meaning: 'True for `router-online`, false for `router-offline`.',
    },
  ],
}

export function routerEvent(routerId: string, isOnline: boolean, atMs: number): NewEvent {
  return {
    namespace: 'router',
    atMs,
    weight: 192,
    fields: () => ({
      event_type: isOnline ? 'router-online' : 'router-offline',
      router_id: routerId,
      router_online: isOnline,
    }),
  }
}
