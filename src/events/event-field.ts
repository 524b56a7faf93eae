import type { EventNamespace } from '../lib/event-namespaces.ts'

/** Which controllers emit an event. */
type Emitter =
  /** Every controller, with the same event id, because the event follows from the log. */
  | 'every'
  /** Only the controller that observed the event. */
  | 'observer'
  /** The controller to which a router sent the report that the event contains. */
  | 'receiver'
  /** The leader, at a fixed interval while the events have a reader. */
  | 'leader'
  /**
   * Every controller, about itself, at a fixed interval while the events have a reader. For metrics
   * of a router, the controller that receives them.
   */
  | 'itself'

export interface EventField {
  readonly name: string
  readonly type: 'string' | 'number' | 'boolean' | 'object' | 'strings' | 'objects'
  /** Meaning of the field, one sentence. */
  readonly meaning: string
  /** True if the field is absent when there is no value. */
  readonly isOptional?: boolean
}

interface EventType {
  readonly name: string
  readonly emitter: Emitter
  readonly when: string
}

/**
 * A namespace of events: its events and their fields, in addition to the fields that every event
 * has.
 */
export interface EventSubject {
  readonly namespace: EventNamespace
  /** Other names by which OpenZiti clients can subscribe to the namespace. */
  readonly aliases: readonly string[]
  readonly about: string
  /** Name of the field that contains the event's type; null: all events have the same type. */
  readonly typeField: 'event_type' | 'eventType' | null
  readonly types: readonly EventType[]
  readonly fields: readonly EventField[]
}

/** Fields of every event. */
export const commonEventFields: readonly EventField[] = [
  { name: 'namespace', type: 'string', meaning: 'Subject of the event, such as `circuit`.' },
  { name: 'event_src_id', type: 'string', meaning: 'The controller that emitted the event.' },
  {
    name: 'timestamp',
    type: 'string',
    meaning:
      'RFC 3339, UTC: log time of the entry that caused the event, or the time at which the controller observed it or, if known, at which the router observed it.',
  },
  {
    name: 'event_id',
    type: 'string',
    meaning:
      '`generation:index:sequence`, the same on every controller for events from the log; otherwise followed by `@` and the controller. Events with equal IDs are the same event.',
  },
]

/** Fields of an event in output order, without the fields that every event has. */
export type EventFields = Readonly<Record<string, unknown>>

/** An event without its position. */
export interface NewEvent {
  readonly namespace: EventNamespace
  /** Time of the event, UTC ms. */
  readonly atMs: number
  readonly fields: () => EventFields
  /** Value that filters compare: the entity type of a change, or the name of a metric. */
  readonly about?: string
  /** Id of the source of a metric, which filters compare. */
  readonly source?: string
  /**
   * Approximate number of characters of the event's text; the ring limits the sum of these numbers.
   */
  readonly weight: number
}
