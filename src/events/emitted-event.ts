import { type EventFilter, type EventPosition, positionText } from '../ports/events.ts'
import type { EventNamespace } from '../lib/event-namespaces.ts'
import type { NewEvent } from './event-field.ts'

/**
 * An event with its position. The event's text is created when the first reader needs it, because
 * no client reads most events.
 */
export class EmittedEvent implements EventRingSlot {
  readonly count = 1
  readonly namespace: EventNamespace
  readonly position: EventPosition
  /**
   * True if the event follows from the log, so that every controller emits it with the same id.
   */
  readonly isReplicated: boolean
  readonly weight: number
  readonly #sourceId: string
  readonly #about: string
  readonly #source: string
  #event: NewEvent | null
  #text: string | null = null

  constructor(event: NewEvent, position: EventPosition, isReplicated: boolean, sourceId: string) {
    this.namespace = event.namespace
    this.position = position
    this.isReplicated = isReplicated
    this.weight = event.weight
    this.#sourceId = sourceId
    this.#about = event.about ?? ''
    this.#source = event.source ?? ''
    this.#event = event
  }

  get id(): string {
    const text = positionText(this.position)
    return this.isReplicated ? text : `${text}@${this.#sourceId}`
  }

  /** The event as one line of JSON. */
  get text(): string {
    const event = this.#event
    if (this.#text !== null || event === null) return this.#text ?? ''
    this.#text = JSON.stringify({
      namespace: event.namespace,
      event_src_id: this.#sourceId,
      timestamp: new Date(event.atMs).toISOString(),
      ...event.fields(),
      event_id: this.id,
    })
    // Releases the event, because it may be large and is no longer needed once its text exists.
    this.#event = null
    return this.#text
  }

  at(offset: number): this | undefined {
    return offset === 0 ? this : undefined
  }

  seenAt(): number {
    return 0
  }

  mayBeFor(filter: EventFilter): boolean {
    return filter.namespaces.has(this.namespace)
  }

  isFor({ namespaces, metrics, sources, entityTypes }: EventFilter): boolean {
    if (!namespaces.has(this.namespace)) return false
    if (this.namespace === 'metrics') {
      return (
        (metrics === null || metrics.matches(this.#about)) &&
        (sources === null || sources.matches(this.#source))
      )
    }
    return this.namespace !== 'entityChange' || entityTypes === null || entityTypes.has(this.#about)
  }
}

/**
 * A slot of the event ring: a single event, or data from which all events of a log entry are
 * created.
 */
export interface EventRingSlot {
  /** Number of events in the slot; at least one. */
  readonly count: number
  /** Approximate bytes of memory that the slot uses. */
  readonly weight: number
  /** Position of the slot's last event. */
  readonly position: EventPosition
  /**
   * False if the filter certainly matches no event of the slot. The answer must not require
   * creating the events.
   */
  mayBeFor(filter: EventFilter): boolean
  /** The event at this offset in the slot, counted from 0. */
  at(offset: number): EmittedEvent | undefined
  /**
   * Number of the slot's events at or before this position, which a reader at the position has
   * already received. The position must be before the slot's last event.
   */
  seenAt(position: EventPosition): number
}
