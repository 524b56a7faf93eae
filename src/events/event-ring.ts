import { comparePositions } from '../ports/events.ts'
import type { EventPosition } from '../ports/events.ts'
import type { EmittedEvent } from './emitted-event.ts'

export interface RingLimits {
  readonly eventsKeptMax: number
  readonly eventBytesKeptMax: number
}

/** The newest events of a controller, by a number that grows by one with each. The oldest go when there are too many. */
export class EventRing {
  readonly #limits: RingLimits
  readonly #events: (EmittedEvent | undefined)[]
  #first = 0
  #end = 0
  #weight = 0
  /** What came after it is here; what came before it may not be. */
  #floor: EventPosition

  constructor(limits: RingLimits, floor: EventPosition) {
    this.#limits = limits
    this.#events = new Array<EmittedEvent | undefined>(limits.eventsKeptMax)
    this.#floor = floor
  }

  get first(): number {
    return this.#first
  }

  /** The number that the next event gets. */
  get end(): number {
    return this.#end
  }

  get weight(): number {
    return this.#weight
  }

  get floor(): EventPosition {
    return this.#floor
  }

  at(number: number): EmittedEvent | undefined {
    if (number < this.#first || number >= this.#end) return undefined
    return this.#events[number % this.#limits.eventsKeptMax]
  }

  push(event: EmittedEvent): void {
    const { eventsKeptMax, eventBytesKeptMax } = this.#limits
    if (this.#end - this.#first >= eventsKeptMax) this.#drop()
    this.#events[this.#end % eventsKeptMax] = event
    this.#end += 1
    this.#weight += event.weight
    while (this.#weight > eventBytesKeptMax && this.#end - this.#first > 1) this.#drop()
  }

  /** What came between is not known: whoever is at an earlier place has a gap. */
  forget(floor: EventPosition): void {
    while (this.#first < this.#end) this.#drop()
    this.#floor = floor
  }

  /** The first event after a position; `isGap` when some between may be gone. */
  after(position: EventPosition): { readonly number: number; readonly isGap: boolean } {
    let [low, high] = [this.#first, this.#end]
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const event = this.at(middle)
      if (event === undefined || comparePositions(event.position, position) <= 0) low = middle + 1
      else high = middle
    }
    return { number: low, isGap: comparePositions(position, this.#floor) < 0 }
  }

  #drop(): void {
    const at = this.#first % this.#limits.eventsKeptMax
    const event = this.#events[at]
    this.#events[at] = undefined
    this.#first += 1
    if (event === undefined) return
    this.#weight -= event.weight
    this.#floor = event.position
  }
}
