import type { Clock } from '../clock.ts'

export interface QuotaLimits {
  /** Maximum uses by one caller in a time window. */
  readonly ofOneMax: number
  /** Maximum uses by all callers together in a time window. */
  readonly allMax: number
  readonly windowMs: number
}

/**
 * Limits the uses in each time window, for each caller and in total. To limit only the rate of each
 * caller, use a `KeyedTokenBuckets`.
 */
export class WindowedQuota {
  readonly #limits: QuotaLimits
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #onDropped: (dropped: number) => void
  readonly #takenBy = new Map<string, number>()
  #beganMs: number
  #taken = 0
  #dropped = 0

  /**
   * @param onDropped called at the first `hasLeft` or `take` after a window has ended, with the
   * number of uses that `take` refused in the window, if there are any.
   */
  constructor(
    limits: QuotaLimits,
    clock: Pick<Clock, 'monotonicMs'>,
    onDropped: (dropped: number) => void = () => undefined,
  ) {
    this.#limits = limits
    this.#clock = clock
    this.#onDropped = onDropped
    this.#beganMs = clock.monotonicMs()
  }

  /** Time until the current window ends, ms. */
  get leftMs(): number {
    return Math.max(0, this.#limits.windowMs - (this.#clock.monotonicMs() - this.#beganMs))
  }

  /** @returns the result that `take` would return, without counting a use. */
  hasLeft(caller: string, ofOneMax = this.#limits.ofOneMax): boolean {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#beganMs >= this.#limits.windowMs) this.#startNext(nowMs)
    return (this.#takenBy.get(caller) ?? 0) < ofOneMax && this.#taken < this.#limits.allMax
  }

  /** @returns whether the caller is within its limits; if so, counts one use. */
  take(caller: string, ofOneMax = this.#limits.ofOneMax): boolean {
    if (!this.hasLeft(caller, ofOneMax)) {
      this.#dropped += 1
      return false
    }
    // The size of this map is bounded, because the total limit also bounds the number of callers.
    this.#takenBy.set(caller, (this.#takenBy.get(caller) ?? 0) + 1)
    this.#taken += 1
    return true
  }

  #startNext(nowMs: number): void {
    if (this.#dropped > 0) this.#onDropped(this.#dropped)
    this.#takenBy.clear()
    this.#beganMs = nowMs
    this.#taken = 0
    this.#dropped = 0
  }
}
