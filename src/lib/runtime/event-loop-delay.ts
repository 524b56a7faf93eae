import { periodicScheduler } from '../periodic-scheduler.ts'

const SAMPLE_MS = 250
const WINDOW_SAMPLES = 20
const PERCENTILE = 0.99

export interface EventLoopDelayGauge {
  readonly p99Ms: number
  stop(): void
}

/**
 * Delay of the timers of this thread's event loop: the 99th percentile of the last five to ten
 * seconds. Samples use the shared timer of the thread, because a separate timer would wake an idle
 * thread.
 */
export class EventLoopDelay implements EventLoopDelayGauge {
  readonly #stop: () => void
  #delaysMs: number[] = []
  #lastWindowMs = 0
  #sampledMs = performance.now()

  constructor() {
    this.#stop = periodicScheduler.every(SAMPLE_MS, () => this.#sample())
  }

  get p99Ms(): number {
    return Math.max(this.#lastWindowMs, percentileMs(this.#delaysMs))
  }

  stop(): void {
    this.#stop()
  }

  #sample(): void {
    const nowMs = performance.now()
    this.#delaysMs.push(Math.max(0, nowMs - this.#sampledMs - SAMPLE_MS))
    this.#sampledMs = nowMs
    if (this.#delaysMs.length < WINDOW_SAMPLES) return
    this.#lastWindowMs = percentileMs(this.#delaysMs)
    this.#delaysMs = []
  }
}

function percentileMs(delaysMs: readonly number[]): number {
  if (delaysMs.length === 0) return 0
  const sorted = delaysMs.toSorted((a, b) => a - b)
  return sorted[Math.ceil(sorted.length * PERCENTILE) - 1] ?? 0
}
