import type { EventNamespace } from '../lib/event-namespaces.ts'

/** Controllers that emit an event. */
export type Emitter =
  /** Each of them, the same with the same id, as it follows from the log. */
  | 'every'
  /** The one that has seen it. */
  | 'seer'
  /** The one that leads, at its interval. */
  | 'leader'
  /** Each of them, of itself, at its interval. */
  | 'itself'

export interface EventField {
  readonly name: string
  readonly type: 'string' | 'number' | 'boolean' | 'object' | 'strings' | 'objects'
  /** One sentence. */
  readonly meaning: string
  /** Left out where there is nothing to say. */
  readonly isOptional?: boolean
}

export interface EventType {
  readonly name: string
  readonly emitter: Emitter
  readonly when: string
}

/** One namespace: what its events are and what stands in them, beside what stands in all. */
export interface EventSubject {
  readonly namespace: EventNamespace
  /** Other names that the API family takes for it in subscriptions. */
  readonly aliases: readonly string[]
  readonly about: string
  /** The name of the field that holds the type; null: all events are of one type. */
  readonly typeField: 'event_type' | 'eventType' | null
  readonly types: readonly EventType[]
  readonly fields: readonly EventField[]
}

/** Fields of every event. */
export const frameFields: readonly EventField[] = [
  { name: 'namespace', type: 'string', meaning: 'What the event is about.' },
  { name: 'event_src_id', type: 'string', meaning: 'The controller that emitted it.' },
  {
    name: 'timestamp',
    type: 'string',
    meaning: 'RFC 3339, UTC: log time of the entry, or when the controller saw it.',
  },
  {
    name: 'event_id',
    type: 'string',
    meaning:
      '`generation:index:sequence`, the same on every controller for what follows from the log; else followed by `@` and the controller. Two events with the same one are the same event.',
  },
]

/** Fields of an event beside those of the frame, in the order in which they are printed. */
export type EventFields = Readonly<Record<string, unknown>>

/** An event that has no position yet. */
export interface NewEvent {
  readonly namespace: EventNamespace
  /** UTC ms. */
  readonly atMs: number
  readonly fields: () => EventFields
  /** Subject that filters look at: the entity type, or the name of the metric. */
  readonly about?: string
  /** Source of a metric. */
  readonly source?: string
  /** About how many characters it takes; it is charged for before it is made. */
  readonly weight: number
}
