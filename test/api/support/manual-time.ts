import type { Scheduler } from '../../../src/api/parts.ts'
import type { Clock } from '../../../src/lib/clock.ts'

/** A clock that moves only when a test says so. */
export class ManualClock implements Clock {
  #nowMs = Date.UTC(2026, 0, 2, 3, 4, 5, 670)
  #monotonicMs = 1000

  nowMs(): number {
    return this.#nowMs
  }

  monotonicMs(): number {
    return this.#monotonicMs
  }

  advance(ms: number): void {
    this.#nowMs += ms
    this.#monotonicMs += ms
  }
}

/** Holds what was to run again and again, for a test to run. */
export class ManualScheduler implements Scheduler {
  readonly runs = new Map<number, () => void>()

  every(periodMs: number, run: () => void): () => void {
    this.runs.set(periodMs, run)
    return () => this.runs.delete(periodMs)
  }
}
