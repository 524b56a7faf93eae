import type { Clock } from '../lib/clock.ts'
import { routerLimits } from './limits.ts'

/**
 * Finds the controllers that have been unreachable from this controller for `controllerLostMs`, so
 * that a short interruption does not count.
 */
export class LostControllerDetector {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  /** When each controller became unreachable; monotonic ms. */
  #sinceMs: ReadonlyMap<string, number> = new Map()

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /**
   * Must be called regularly.
   * @param unreachable IDs of the members that are unreachable now.
   */
  update(unreachable: readonly string[]): ReadonlySet<string> {
    const nowMs = this.#clock.monotonicMs()
    const before = this.#sinceMs
    this.#sinceMs = new Map(unreachable.map((id) => [id, before.get(id) ?? nowMs]))
    const isLost = ([, sinceMs]: readonly [string, number]): boolean =>
      nowMs - sinceMs >= routerLimits.controllerLostMs
    return new Set(Array.from(this.#sinceMs).flatMap((entry) => (isLost(entry) ? [entry[0]] : [])))
  }
}
