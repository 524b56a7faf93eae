import type { EventNamespace } from '../lib/event-namespaces.ts'
import type { EventPosition } from '../ports/events.ts'
import { EmittedEvent, type EventRingSlot } from './emitted-event.ts'
import { EventRing, type EventRingLimits } from './event-ring.ts'
import type { NewEvent } from './event-field.ts'

interface EventBusDeps {
  /** Id of this controller. */
  readonly selfId: string
  readonly generation: number
  readonly appliedIndex: () => number
  /**
   * Start of the process, UTC ms. The first sequence number is derived from it, so that numbers of
   * an earlier process are smaller if the clock was not set back.
   */
  readonly startedAtMs: number
  readonly limits: EventRingLimits
}

/**
 * Factor that converts the start time of a process to its first sequence number. The sequence
 * numbers of a process exceed the numbers of an earlier process, unless the earlier process emitted
 * more than a thousand events per millisecond or the clock was set back.
 */
const SEQUENCES_PER_MS = 1000

/**
 * All events of a controller, in order. The bus calls listeners after the current turn of the event
 * loop, never while an entry is applied. Readers read events from the ring at their own speed.
 */
export class EventBus {
  readonly ring: EventRing
  readonly #deps: EventBusDeps
  readonly #listeners = new Set<() => void>()
  readonly #interest = new Map<EventNamespace, number>()
  #liveSequence: number
  #isNotifying = false

  constructor(deps: EventBusDeps) {
    this.#deps = deps
    this.#liveSequence = deps.startedAtMs * SEQUENCES_PER_MS
    this.ring = new EventRing(deps.limits, this.#here(0))
  }

  get selfId(): string {
    return this.#deps.selfId
  }

  get generation(): number {
    return this.#deps.generation
  }

  get appliedIndex(): number {
    return this.#deps.appliedIndex()
  }

  /** Position after all events that were emitted so far, and before all later events. */
  get position(): EventPosition {
    return this.#here(this.#liveSequence)
  }

  /** Returns a new position that is after all events emitted so far. */
  nextPosition(): EventPosition {
    this.#liveSequence += 1
    return this.position
  }

  /** Emits the events of a log entry, in their order within the entry. */
  emitEntry(entry: { slots(limits: EventRingLimits): readonly EventRingSlot[] }): void {
    const slots = entry.slots(this.#deps.limits)
    if (slots.length === 0) return
    for (const slot of slots) this.ring.push(slot)
    this.#notifyLater()
  }

  /**
   * Emits an event that this controller observed. Must not be called while an entry is applied,
   * because the event would come before the events of the entry that is being applied.
   */
  emitLive(event: NewEvent): void {
    const position = this.nextPosition()
    this.ring.push(new EmittedEvent(event, position, false, this.#deps.selfId))
    this.#notifyLater()
  }

  /**
   * Must be called after the whole state was replaced. The events of the skipped entries are
   * unknown, so readers must report a gap.
   */
  noteGap(): void {
    this.ring.forget(this.#here(this.#liveSequence))
    this.#notifyLater()
  }

  /**
   * Registers a listener that is called after one or more new events.
   * @returns a function that removes the listener.
   */
  onEvents(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  /**
   * Registers a reader of these namespaces. The controller emits events of the namespaces
   * `metrics`, `usage`, `service` and `entityCount` only while they have a reader.
   * @returns a function that removes the reader.
   */
  want(namespaces: Iterable<EventNamespace>): () => void {
    const wanted = [...namespaces]
    for (const one of wanted) this.#interest.set(one, (this.#interest.get(one) ?? 0) + 1)
    return () => {
      for (const one of wanted.splice(0)) {
        this.#interest.set(one, (this.#interest.get(one) ?? 1) - 1)
      }
    }
  }

  isWanted(namespace: EventNamespace): boolean {
    return (this.#interest.get(namespace) ?? 0) > 0
  }

  #here(sequence: number): EventPosition {
    const { appliedIndex, generation } = this.#deps
    return { generation, index: appliedIndex(), sequence }
  }

  #notifyLater(): void {
    if (this.#isNotifying || this.#listeners.size === 0) return
    this.#isNotifying = true
    setImmediate(() => {
      this.#isNotifying = false
      for (const listener of Array.from(this.#listeners)) listener()
    })
  }
}
