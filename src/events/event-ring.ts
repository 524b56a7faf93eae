import { comparePositions, type EventFilter, type EventPosition } from '../ports/events.ts'
import type { EmittedEvent, EventRingSlot } from './emitted-event.ts'

export interface EventRingLimits {
  readonly eventsKeptMax: number
  readonly eventBytesKeptMax: number
}

/**
 * The newest events of a controller, with consecutive numbers. The oldest events are evicted when
 * there are too many.
 */
export class EventRing {
  readonly #limits: EventRingLimits
  readonly #slots: (EventRingSlot | undefined)[]
  /** Number of the first event in each slot. */
  readonly #numbers: Float64Array
  /**
   * Numbers of the oldest slot, and of the slot that the next event gets. Slots have consecutive
   * numbers.
   */
  #oldest = 0
  #next = 0
  /**
   * Slot that was read last. The search starts there, because the next read is usually in the same
   * slot or the next slot.
   */
  #found = 0
  #end = 0
  #weight = 0
  /** All events after this position are in the ring; earlier events may be missing. */
  #floor: { readonly position: EventPosition }

  constructor(limits: EventRingLimits, floor: EventPosition) {
    this.#limits = limits
    this.#slots = new Array<EventRingSlot | undefined>(limits.eventsKeptMax)
    this.#numbers = new Float64Array(limits.eventsKeptMax)
    this.#floor = { position: floor }
  }

  get first(): number {
    return this.#firstOf(this.#oldest)
  }

  /** The number that the next event will get. */
  get end(): number {
    return this.#end
  }

  get weight(): number {
    return this.#weight
  }

  get floor(): EventPosition {
    return this.#floor.position
  }

  at(number: number): EmittedEvent | undefined {
    if (number < this.first || number >= this.#end) return undefined
    const slot = this.#slotOf(number)
    return this.#slot(slot)?.at(number - this.#firstOf(slot))
  }

  /**
   * The number of the first event, at or after `from`, that matches a filter. If no event matches:
   * the number after the newest event, or `from` itself if the event with this number was evicted.
   */
  find(from: number, filter: EventFilter): number {
    let number = from
    while (number >= this.first && number < this.#end) {
      const slot = this.#slotOf(number)
      if (this.#slot(slot)?.mayBeFor(filter) !== true) number = this.#firstOf(slot + 1)
      else if (this.at(number)?.isFor(filter) === true) return number
      else number += 1
    }
    return number
  }

  push(slot: EventRingSlot): void {
    const { eventsKeptMax, eventBytesKeptMax } = this.#limits
    const room = eventsKeptMax - slot.count
    while (this.#oldest < this.#next && this.#end - this.first > room) this.#drop()
    this.#slots[this.#next % eventsKeptMax] = slot
    this.#numbers[this.#next % eventsKeptMax] = this.#end
    this.#next += 1
    this.#end += slot.count
    this.#weight += slot.weight
    while (this.#weight > eventBytesKeptMax && this.#next - this.#oldest > 1) this.#drop()
  }

  /**
   * Drops all events, because some events after them are unknown. A reader at an earlier position
   * then has a gap.
   */
  forget(floor: EventPosition): void {
    while (this.#oldest < this.#next) this.#drop()
    this.#floor = { position: floor }
  }

  /**
   * The first event after a position; `isGap` is true if events between the position and this event
   * may have been evicted.
   */
  after(position: EventPosition): { readonly number: number; readonly isGap: boolean } {
    const slot = this.#search((one) => {
      const last = this.#slot(one)?.position
      return last !== undefined && comparePositions(last, position) > 0
    })
    const number = this.#firstOf(slot) + (this.#slot(slot)?.seenAt(position) ?? 0)
    return { number, isGap: comparePositions(position, this.floor) < 0 }
  }

  #slot(slot: number): EventRingSlot | undefined {
    return this.#slots[slot % this.#limits.eventsKeptMax]
  }

  #firstOf(slot: number): number {
    if (slot >= this.#next) return this.#end
    return this.#numbers[slot % this.#limits.eventsKeptMax] ?? 0
  }

  /** The slot that contains an event; the event must still be in the ring. */
  #slotOf(number: number): number {
    const isIn = (slot: number): boolean =>
      slot >= this.#oldest && this.#firstOf(slot) <= number && number < this.#firstOf(slot + 1)
    if (isIn(this.#found)) return this.#found
    this.#found = isIn(this.#found + 1)
      ? this.#found + 1
      : this.#search((slot) => this.#firstOf(slot + 1) > number)
    return this.#found
  }

  /**
   * Binary search for the first slot that meets the condition. All later slots must meet the
   * condition as well.
   */
  #search(isFrom: (slot: number) => boolean): number {
    let [low, high] = [this.#oldest, this.#next]
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if (isFrom(middle)) high = middle
      else low = middle + 1
    }
    return low
  }

  #drop(): void {
    const at = this.#oldest % this.#limits.eventsKeptMax
    const slot = this.#slots[at]
    this.#slots[at] = undefined
    this.#oldest += 1
    if (slot === undefined) return
    this.#weight -= slot.weight
    this.#floor = slot
  }
}
