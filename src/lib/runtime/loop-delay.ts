import { monitorEventLoopDelay } from 'node:perf_hooks'

/**
 * Each sample wakes its thread, so that often ones cost an idle controller more than all else that
 * it does.
 */
const RESOLUTION_MS = 100
const WINDOW_MS = 5000
const NS_PER_MS = 1e6

export interface LoopDelayGauge {
  readonly p99Ms: number
  stop(): void
}

/**
 * How late the timers of this thread's event loop are: the 99th percentile of the last five to ten
 * seconds.
 */
export class LoopDelay implements LoopDelayGauge {
  readonly #histogram: ReturnType<typeof monitorEventLoopDelay>
  readonly #timer: NodeJS.Timeout
  #lastWindowMs = 0

  constructor() {
    this.#histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
    this.#histogram.enable()
    this.#timer = setInterval(() => {
      this.#lastWindowMs = this.#currentMs()
      this.#histogram.reset()
    }, WINDOW_MS)
    this.#timer.unref()
  }

  get p99Ms(): number {
    return Math.max(this.#lastWindowMs, this.#currentMs())
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#histogram.disable()
  }

  /** What it measures is the time between two samples, which are taken one resolution apart. */
  #currentMs(): number {
    const p99Ms = this.#histogram.percentile(99) / NS_PER_MS
    return this.#histogram.count === 0 ? 0 : Math.max(0, p99Ms - RESOLUTION_MS)
  }
}
