import { type EventFilter, type EventPosition, positionText } from '../ports/events.ts'
import type { EventNamespace } from '../lib/event-namespaces.ts'
import type { NewEvent } from './field.ts'

/**
 * An event in its place. Its text is made when the first reader wants it: most events have none.
 */
export class EmittedEvent implements RingSlot {
  readonly count = 1
  readonly namespace: EventNamespace
  readonly position: EventPosition
  /** It follows from the log: every controller emits it under the same id. */
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

  /** One line of JSON. */
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
    // Its source may be large, and is not needed again.
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
 * Content of one slot: a single event, or the data from which all events of an entry are created.
 */
export interface RingSlot {
  /** Events that it comes to; at least one. */
  readonly count: number
  /** About how many bytes it holds on to. */
  readonly weight: number
  /** Position of its last event. */
  readonly position: EventPosition
  /**
   * False where a filter wants none of its events, as far as that is known before they are made.
   */
  mayBeFor(filter: EventFilter): boolean
  /** The event at a place in it, from 0 on. */
  at(offset: number): EmittedEvent | undefined
  /** How many of its events a reader has seen who was at an earlier position than its last one. */
  seenAt(position: EventPosition): number
}
