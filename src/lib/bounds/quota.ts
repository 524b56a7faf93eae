import type { Clock } from '../clock.ts'

export interface QuotaLimits {
  /** Most of one caller, in a window of time. */
  readonly ofOneMax: number
  /** Most of all callers. */
  readonly allMax: number
  readonly windowMs: number
}

/**
 * So much a caller, and so much in all, in each window of time. One that only paces each caller is
 * a `KeyedRate`.
 */
export class Quota {
  readonly #limits: QuotaLimits
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #onDropped: (dropped: number) => void
  readonly #takenBy = new Map<string, number>()
  #beganMs: number
  #taken = 0
  #dropped = 0

  /** @param onDropped told once in a window, at its end, of how much there was too much. */
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

  /** Time until the window ends. */
  get leftMs(): number {
    return Math.max(0, this.#limits.windowMs - (this.#clock.monotonicMs() - this.#beganMs))
  }

  /** @returns whether `take` would say yes; counts nothing. */
  hasLeft(caller: string, ofOneMax = this.#limits.ofOneMax): boolean {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#beganMs >= this.#limits.windowMs) this.#startNext(nowMs)
    return (this.#takenBy.get(caller) ?? 0) < ofOneMax && this.#taken < this.#limits.allMax
  }

  /** @returns whether there is one more for that caller; a yes counts as one. */
  take(caller: string, ofOneMax = this.#limits.ofOneMax): boolean {
    if (!this.hasLeft(caller, ofOneMax)) {
      this.#dropped += 1
      return false
    }
    // No more callers than there is in all.
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
