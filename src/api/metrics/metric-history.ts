import type { Clock } from '../../lib/clock.ts'
import type { PeriodicScheduler } from '../../lib/periodic-scheduler.ts'
import { RowRingBuffer } from './row-ring-buffer.ts'

export const metricHistoryLimits = {
  /** Number of samples for each metric, which cover one hour. */
  historySamplesMax: 360,
  /** Interval between two samples of each metric. */
  historyPeriodMs: 10_000,
} as const

/**
 * Metrics of one controller. `appliedLag` is the value at the time of the sample; all others cover
 * the time since the previous sample.
 */
export const metricHistoryNames = [
  'commitsPerSecond',
  'appliedLag',
  'fsyncP99Ms',
  'leaderChanges',
  'logIns',
  'requestsPerSecond',
] as const
type HistoryFigure = (typeof metricHistoryNames)[number]

/** Counters since the start of the process, and current values. */
export interface MetricHistoryTotals {
  readonly commitIndex: number
  readonly appliedIndex: number
  readonly fsyncs: number
  /** Value for the last ten seconds, which is one sampling period. */
  readonly fsyncP99Ms: number
  readonly leaderChanges: number
  readonly logIns: number
  readonly requests: number
}

interface HistoryView {
  readonly periodMs: number
  /** Time of the newest sample, UTC ms; null before the first sample. */
  readonly endedAtMs: number | null
  /** Values of each metric, oldest sample first; null: unknown. */
  readonly figures: Readonly<Record<HistoryFigure, readonly (number | null)[]>>
}

/** Metrics of a controller for the last hour, in memory: one row of a ring for each sample. */
export class MetricHistory {
  readonly #read: () => MetricHistoryTotals
  readonly #clock: Clock
  readonly #ring = new RowRingBuffer(
    metricHistoryLimits.historySamplesMax,
    metricHistoryNames.length,
  )
  #last: { readonly totals: MetricHistoryTotals; readonly atMs: number } | null = null
  #count = 0
  #endedAtMs: number | null = null
  #stop: (() => void) | null = null

  constructor(read: () => MetricHistoryTotals, clock: Clock) {
    this.#read = read
    this.#clock = clock
  }

  start(scheduler: PeriodicScheduler): void {
    this.#sample()
    this.#stop = scheduler.every(metricHistoryLimits.historyPeriodMs, () => this.#sample())
  }

  stop(): void {
    this.#stop?.()
  }

  #sample(): void {
    const totals = this.#read()
    const atMs = this.#clock.monotonicMs()
    const last = this.#last
    this.#last = { totals, atMs }
    if (last === null || atMs <= last.atMs) return
    const found = figuresBetween(last.totals, totals, (atMs - last.atMs) / 1000)
    for (const [at, name] of metricHistoryNames.entries())
      this.#ring.add(this.#count, at, found[name])
    this.#count += 1
    this.#endedAtMs = this.#clock.nowMs()
  }

  view(): HistoryView {
    const { historyPeriodMs: periodMs, historySamplesMax: max } = metricHistoryLimits
    const first = Math.max(0, this.#count - max)
    const samples = (at: number): readonly (number | null)[] =>
      Array.from({ length: this.#count - first }, (_, n) =>
        shown(this.#ring.at(first + n, at) ?? NaN),
      )
    const figures = Object.fromEntries(
      metricHistoryNames.map((name, at) => [name, samples(at)]),
    ) as unknown as HistoryView['figures']
    return { periodMs, endedAtMs: this.#endedAtMs, figures }
  }
}

function figuresBetween(
  before: MetricHistoryTotals,
  after: MetricHistoryTotals,
  seconds: number,
): Readonly<Record<HistoryFigure, number>> {
  // A counter that has decreased was reset, for example because the Raft thread restarted.
  const grown = (name: keyof MetricHistoryTotals): number =>
    after[name] < before[name] ? after[name] : after[name] - before[name]
  return {
    commitsPerSecond: grown('commitIndex') / seconds,
    appliedLag: Math.max(0, after.commitIndex - after.appliedIndex),
    fsyncP99Ms: grown('fsyncs') === 0 ? NaN : after.fsyncP99Ms,
    leaderChanges: grown('leaderChanges'),
    logIns: grown('logIns'),
    requestsPerSecond: grown('requests') / seconds,
  }
}

/** Rounds a value to two decimal places, which is enough for a chart. */
function shown(value: number): number | null {
  return Number.isNaN(value) ? null : Math.round(value * 100) / 100
}
