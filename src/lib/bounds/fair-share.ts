import { KeyedCounts } from './keyed-counts.ts'

/**
 * Most of the room for one: the rest is for others that come while one caller takes what it can
 * get.
 */
const OWN_PART_MAX = 0.75
/** Above it room is scarce, and each caller is held to its part. */
const SCARCE_PART = 0.5

/**
 * Room of a fixed size that callers share. While there is plenty each takes what it needs; when it
 * gets scarce nobody gets more who has an equal part of it already; and nobody alone can ever fill
 * it.
 */
export class FairShare {
  readonly #max: number
  readonly #taken = new KeyedCounts()
  #total = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Whether there is no room for any caller. */
  get isFull(): boolean {
    return this.#total >= this.#max
  }

  /** The caller that has most; '' when none has any. */
  largest(): string {
    return this.#taken.largest()
  }

  /** Whether the caller may take some more: it is asked before, so the last one may go beyond. */
  hasRoomFor(caller: string): boolean {
    if (this.#total < this.#max * SCARCE_PART) return true
    if (this.#total >= this.#max) return false
    const own = this.#taken.of(caller)
    if (own >= Math.max(1, this.#max * OWN_PART_MAX)) return false
    const callers = this.#taken.size + (own === 0 ? 1 : 0)
    return own < Math.max(1, this.#max / callers)
  }

  take(caller: string, amount = 1): void {
    this.#taken.add(caller, amount)
    this.#total += amount
  }

  /** Gives back what `take` took. */
  giveBack(caller: string, amount = 1): void {
    this.#taken.add(caller, -amount)
    this.#total -= amount
  }
}
