import type { DialAttempt } from '../../ports/observations.ts'
import { eventLimits } from '../limits.ts'
import type { DialCount } from '../subjects/service.ts'

/** Counts, per interval, the dials of services through this controller. */
export class DialCounter {
  #counts = new Map<string, DialCount>()
  #sinceMs: number

  constructor(nowMs: number) {
    this.#sinceMs = nowMs
  }

  note({ serviceId, terminatorId, result }: DialAttempt): void {
    const key = JSON.stringify([result, serviceId, terminatorId])
    const { count = 0 } = this.#counts.get(key) ?? {}
    if (count === 0 && this.#counts.size >= eventLimits.dialCountsMax) return
    this.#counts.set(key, { serviceId, terminatorId, result, count: count + 1 })
  }

  take(nowMs: number): {
    readonly counts: readonly DialCount[]
    readonly interval: { readonly fromMs: number; readonly toMs: number }
  } {
    const interval = { fromMs: this.#sinceMs, toMs: nowMs }
    const counts = [...this.#counts.values()]
    this.#counts = new Map()
    this.#sinceMs = nowMs
    return { counts, interval }
  }
}
