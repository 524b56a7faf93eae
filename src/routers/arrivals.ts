import type { Clock } from '../lib/clock.ts'
import { routerLimits } from './limits.ts'

const MINUTE_MS = 60_000

/**
 * How often each router has connected lately: each time its channel comes and goes costs all
 * controllers more than it costs the router.
 */
export class Arrivals {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  /** Of routers that were admitted, so no more than there are records. */
  readonly #counts = new Map<string, number>()
  #sinceMs = -Infinity

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** @returns false when it has connected too often in this minute. */
  note(routerId: string): boolean {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#sinceMs >= MINUTE_MS) {
      this.#sinceMs = nowMs
      this.#counts.clear()
    }
    const count = (this.#counts.get(routerId) ?? 0) + 1
    this.#counts.set(routerId, count)
    return count <= routerLimits.routerConnectsPerMinuteMax
  }
}
