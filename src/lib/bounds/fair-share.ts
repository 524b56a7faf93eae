import { KeyedCounts } from './keyed-counts.ts'

/**
 * Maximum fraction of the capacity that one caller may use. The rest stays available for callers
 * that arrive later.
 */
const OWN_PART_MAX = 0.75
/**
 * If callers together use a larger fraction of the capacity than this, capacity is scarce, and each
 * caller is limited to an equal share.
 */
const SCARCE_PART = 0.5

/**
 * A fixed capacity that callers share fairly. While much of the capacity is free, each caller may
 * use what it needs, up to `OWN_PART_MAX`. When capacity is scarce, a caller that already has an
 * equal share gets no more.
 */
export class FairShare {
  readonly #max: number
  readonly #taken = new KeyedCounts()
  #total = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Whether the capacity is exhausted for all callers. */
  get isFull(): boolean {
    return this.#total >= this.#max
  }

  /** The caller that uses most; '' when no caller uses anything. */
  largest(): string {
    return this.#taken.largest()
  }

  /**
   * Whether the caller may take more. The caller may not know the amount before it takes, so its
   * last `take` may exceed the limit.
   */
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

  /** Returns capacity that the caller got from `take`. */
  giveBack(caller: string, amount = 1): void {
    this.#taken.add(caller, -amount)
    this.#total -= amount
  }
}
