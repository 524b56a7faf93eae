import type { Clock } from '../../../src/lib/clock.ts'
import type { PeriodicScheduler } from '../../../src/lib/periodic-scheduler.ts'

/** A clock that advances only when a test advances it. */
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

  /** Changes only the wall clock, as a faulty time server does. */
  jump(ms: number): void {
    this.#nowMs += ms
  }
}

/** Collects periodic tasks; a test runs all tasks of one period together. */
export class ManualScheduler implements PeriodicScheduler {
  readonly #runs = new Map<number, Set<() => void>>()

  every(periodMs: number, run: () => void): () => void {
    const runs = this.#runs.get(periodMs) ?? new Set()
    this.#runs.set(periodMs, runs.add(run))
    return () => runs.delete(run)
  }

  run(periodMs: number): void {
    for (const run of this.#runs.get(periodMs) ?? []) run()
  }
}
