import type { Clock } from '../clock.ts'

export interface Rate {
  /** Times at once, after a quiet time. */
  readonly burst: number
  /** Times a second, on and on. */
  readonly perSecond: number
}

interface Budget {
  left: number
  /** Monotonic ms as of which it is so much. */
  atMs: number
}

/**
 * Budget of one that may do something so many times at once and so many times a second after that.
 */
export class RateBudget {
  readonly #rate: Rate
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #budget: Budget

  constructor(rate: Rate, clock: Pick<Clock, 'monotonicMs'>) {
    this.#rate = rate
    this.#clock = clock
    this.#budget = { left: rate.burst, atMs: clock.monotonicMs() }
  }

  /** @returns false when that is once too often. */
  take(): boolean {
    return takeFrom(this.#budget, this.#rate, this.#clock.monotonicMs())
  }
}

/**
 * A budget for each of many keys, which fills again by and by; those that were not used for longest
 * are forgotten first. It bounds no sum over the keys: that is a `Quota`.
 */
export class KeyedRate {
  readonly #rate: Rate
  readonly #keysMax: number
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #budgets = new Map<string, Budget>()

  constructor(rate: Rate & { readonly keysMax: number }, clock: Pick<Clock, 'monotonicMs'>) {
    this.#rate = rate
    this.#keysMax = rate.keysMax
    this.#clock = clock
  }

  /** @returns false when that is once too often for the key. */
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
