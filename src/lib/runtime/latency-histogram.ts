/** Upper bounds of the buckets, ms; longer latencies are included only in the total count. */
export const LATENCY_BOUNDS_MS = [
  0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000,
] as const

/** Contains only plain numbers, so that threads can send it to each other. */
export interface LatencyCounts {
  /** Number of latencies since the histogram was created. */
  readonly count: number
  readonly sumMs: number
  /**
   * Cumulative counts: number of latencies up to the bound at the same position, since the
   * histogram was created.
   */
  readonly buckets: readonly number[]
  /** 99th percentile of the last eight to ten seconds; 0 if there were no values. */
  readonly p99Ms: number
}

export const NO_LATENCIES: LatencyCounts = { count: 0, sumMs: 0, buckets: [], p99Ms: 0 }

const WINDOW_MS = 2000
const WINDOWS = 5

/**
 * A histogram of latencies: counts since its creation, and the 99th percentile of the last eight to
 * ten seconds.
 */
export class LatencyHistogram {
  readonly #total = new Float64Array(LATENCY_BOUNDS_MS.length + 1)
  readonly #windows = Array.from({ length: WINDOWS }, () => new Window())
  #count = 0
  #sumMs = 0

  record(durationMs: number, nowMs: number): void {
    const at = bucketOf(durationMs)
    this.#total[at] = (this.#total[at] ?? 0) + 1
    this.#count += 1
    this.#sumMs += durationMs
    this.#windowAt(nowMs)?.add(at, durationMs)
  }

  /** @param nowMs monotonic, of the same clock as in `record`. */
  counts(nowMs: number): LatencyCounts {
    let sum = 0
    const buckets = LATENCY_BOUNDS_MS.map((_, at) => (sum += this.#total[at] ?? 0))
    return { count: this.#count, sumMs: this.#sumMs, buckets, p99Ms: this.#p99Ms(nowMs) }
  }

  #windowAt(nowMs: number): Window | undefined {
    const number = Math.floor(nowMs / WINDOW_MS)
    const window = this.#windows[number % WINDOWS]
    if (window !== undefined && window.number !== number) window.restart(number)
    return window
  }

  #p99Ms(nowMs: number): number {
    const oldest = Math.floor(nowMs / WINDOW_MS) - WINDOWS + 1
    const live = this.#windows.filter(({ number }) => number >= oldest)
    const total = live.reduce((sum, { count }) => sum + count, 0)
    if (total === 0) return 0
    const maxMs = Math.max(...live.map((window) => window.maxMs))
    const rank = total * 0.99
    let before = 0
    for (const [at, upper] of LATENCY_BOUNDS_MS.entries()) {
      const here = live.reduce((sum, { buckets }) => sum + (buckets[at] ?? 0), 0)
      if (before + here >= rank) {
        const lower = LATENCY_BOUNDS_MS[at - 1] ?? 0
        return Math.min(maxMs, lower + ((upper - lower) * (rank - before)) / here)
      }
      before += here
    }
    return maxMs
  }
}

class Window {
  number = -1
  count = 0
  maxMs = 0
  readonly buckets = new Float64Array(LATENCY_BOUNDS_MS.length + 1)

  restart(number: number): void {
    this.number = number
    this.count = 0
    this.maxMs = 0
    this.buckets.fill(0)
  }

  add(at: number, durationMs: number): void {
    this.count += 1
    this.maxMs = Math.max(this.maxMs, durationMs)
    this.buckets[at] = (this.buckets[at] ?? 0) + 1
  }
}

function bucketOf(durationMs: number): number {
  const at = LATENCY_BOUNDS_MS.findIndex((bound) => durationMs <= bound)
  return at === -1 ? LATENCY_BOUNDS_MS.length : at
}
