import type { Clock } from '../lib/clock.ts'

/**
 * Lines about refused writes in one minute: what is refused costs its caller nothing, and must not
 * fill a disk.
 */
export const refusalLimits = {
  linesOfOneMax: 30,
  linesMax: 600,
  windowMs: 60_000,
} as const

/** So many lines a caller, and so many in all, in each window of time. */
export class RefusalQuota {
  readonly #clock: Clock
  readonly #onDropped: (dropped: number) => void
  readonly #linesOf = new Map<string, number>()
  #beganMs: number
  #lines = 0
  #dropped = 0

  /** @param onDropped told once in a window, at its end, of how many lines there were too many. */
  constructor(clock: Clock, onDropped: (dropped: number) => void) {
    this.#clock = clock
    this.#onDropped = onDropped
    this.#beganMs = clock.monotonicMs()
  }

  /** @returns whether there may be a line about that caller; a yes counts as one. */
  take(caller: string): boolean {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#beganMs >= refusalLimits.windowMs) this.#beginAnew(nowMs)
    const own = this.#linesOf.get(caller) ?? 0
    if (own >= refusalLimits.linesOfOneMax || this.#lines >= refusalLimits.linesMax) {
      this.#dropped += 1
      return false
    }
    // No more callers than lines.
    this.#linesOf.set(caller, own + 1)
    this.#lines += 1
    return true
  }

  #beginAnew(nowMs: number): void {
    if (this.#dropped > 0) this.#onDropped(this.#dropped)
    this.#linesOf.clear()
    this.#beganMs = nowMs
    this.#lines = 0
    this.#dropped = 0
  }
}
