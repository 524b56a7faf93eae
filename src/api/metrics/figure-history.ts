import type { Clock } from '../../lib/clock.ts'
import type { PeriodicScheduler } from '../../lib/periodic-scheduler.ts'
import { FigureRing } from './figure-ring.ts'

export const historyLimits = {
  /** Samples of one hour, for each metric. */
  historySamplesMax: 360,
  historyPeriodMs: 10_000,
} as const

/** Metrics of one controller, each for the time since the previous sample. */
export const historyFigures = [
  'commitsPerSecond',
  'appliedLag',
  'fsyncP99Ms',
  'leaderChanges',
  'logIns',
  'requestsPerSecond',
] as const
type HistoryFigure = (typeof historyFigures)[number]

/** Counters since the start of the process, and current values. */
export interface HistoryTotals {
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
  /** Time of the newest sample, UTC ms; null: no sample yet. */
  readonly endedAtMs: number | null
  /** Values of each metric, oldest sample first; null: unknown. */
  readonly figures: Readonly<Record<HistoryFigure, readonly (number | null)[]>>
}

/** Metrics of a controller for the last hour, in memory: one row of a ring for each sample. */
export class MetricHistory {
  readonly #read: () => HistoryTotals
  readonly #clock: Clock
  readonly #ring = new FigureRing(historyLimits.historySamplesMax, historyFigures.length)
  #last: { readonly totals: HistoryTotals; readonly atMs: number } | null = null
  #count = 0
  #endedAtMs: number | null = null
  #stop: (() => void) | null = null

  constructor(read: () => HistoryTotals, clock: Clock) {
    this.#read = read
    this.#clock = clock
  }

  start(scheduler: PeriodicScheduler): void {
    this.#sample()
    this.#stop = scheduler.every(historyLimits.historyPeriodMs, () => this.#sample())
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
    for (const [at, name] of historyFigures.entries()) this.#ring.add(this.#count, at, found[name])
    this.#count += 1
    this.#endedAtMs = this.#clock.nowMs()
  }

  view(): HistoryView {
    const { historyPeriodMs: periodMs, historySamplesMax: max } = historyLimits
    const first = Math.max(0, this.#count - max)
    const samples = (at: number): readonly (number | null)[] =>
      Array.from({ length: this.#count - first }, (_, n) =>
        shown(this.#ring.at(first + n, at) ?? NaN),
      )
    const figures = Object.fromEntries(
      historyFigures.map((name, at) => [name, samples(at)]),
    ) as unknown as HistoryView['figures']
    return { periodMs, endedAtMs: this.#endedAtMs, figures }
  }
}

function figuresBetween(
  before: HistoryTotals,
  after: HistoryTotals,
  seconds: number,
): Readonly<Record<HistoryFigure, number>> {
  // If a counter has decreased, it was reset, for example because the Raft thread restarted.
  const grown = (name: keyof HistoryTotals): number =>
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

/** Rounds the value: a chart needs only two decimal places. */
function shown(value: number): number | null {
  return Number.isNaN(value) ? null : Math.round(value * 100) / 100
}
