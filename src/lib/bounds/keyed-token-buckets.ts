import type { Clock } from '../clock.ts'

interface Rate {
  /** Maximum uses without a pause after an idle period. */
  readonly burst: number
  /** Sustained uses per second. */
  readonly perSecond: number
}

interface Budget {
  left: number
  /** Monotonic ms at which `left` was computed. */
  atMs: number
}

/** A token bucket: `burst` uses without a pause, then `perSecond`. */
export class TokenBucket {
  readonly #rate: Rate
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #budget: Budget

  constructor(rate: Rate, clock: Pick<Clock, 'monotonicMs'>) {
    this.#rate = rate
    this.#clock = clock
    this.#budget = { left: rate.burst, atMs: clock.monotonicMs() }
  }

  /**
   * Uses one token.
   * @returns false when the rate is exceeded.
   */
  take(): boolean {
    return takeFrom(this.#budget, this.#rate, this.#clock.monotonicMs())
  }
}

/**
 * A token bucket per key; the least recently used keys are evicted first. The class does not limit
 * the sum over all keys; use a `WindowedQuota` for that.
 */
export class KeyedTokenBuckets {
  readonly #rate: Rate
  readonly #keysMax: number
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #budgets = new Map<string, Budget>()

  constructor(rate: Rate & { readonly keysMax: number }, clock: Pick<Clock, 'monotonicMs'>) {
    this.#rate = rate
    this.#keysMax = rate.keysMax
    this.#clock = clock
  }

  /**
   * Uses one token of the key.
   * @returns false when the key exceeds its rate.
   */
  take(key: string): boolean {
    const atMs = this.#clock.monotonicMs()
    const budget = this.#budgets.get(key) ?? { left: this.#rate.burst, atMs }
    this.#budgets.delete(key)
    this.#budgets.set(key, budget)
    const [oldest] = this.#budgets.keys()
    if (this.#budgets.size > this.#keysMax && oldest !== undefined) this.#budgets.delete(oldest)
    return takeFrom(budget, this.#rate, atMs)
  }
}

function takeFrom(budget: Budget, { burst, perSecond }: Rate, nowMs: number): boolean {
  budget.left = Math.min(burst, budget.left + ((nowMs - budget.atMs) * perSecond) / 1000)
  budget.atMs = nowMs
  if (budget.left < 1) return false
  budget.left -= 1
  return true
}
