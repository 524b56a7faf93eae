import { KeyedCounts } from './keyed-counts.ts'

/** Maximum share of one caller. The rest stays available for others that arrive later. */
const OWN_PART_MAX = 0.75
/** Above this use, capacity is scarce and each caller is limited to an equal part. */
const SCARCE_PART = 0.5

/**
 * A fixed capacity shared by callers. While there is plenty, each caller takes what it needs. When
 * the capacity gets scarce, a caller that already has an equal share gets no more. No single caller
 * can take all of it.
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

  /** The caller with the largest amount; '' when no caller has any. */
  largest(): string {
    return this.#taken.largest()
  }

  /**
   * Whether the caller may take more. The amount is not known yet, so the last take may exceed the
   * limit.
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

  /** Returns capacity taken by `take`. */
  giveBack(caller: string, amount = 1): void {
    this.#taken.add(caller, -amount)
    this.#total -= amount
  }
}
