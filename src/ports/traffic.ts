/** Kinds of records whose traffic is counted. */
export const trafficKinds = ['service', 'router'] as const
export type TrafficKind = (typeof trafficKinds)[number]

/**
 * Numbers of one period, in the order in which rings and messages between controllers contain them.
 * `rxBytes` and `txBytes`: read and written by routers, of a service at the clients' side only.
 * `latencyMs` is a sum of `latencies` values.
 */
export const trafficFigures = [
  'rxBytes',
  'txBytes',
  'circuits',
  'dialFailures',
  'latencyMs',
  'latencies',
] as const
export type TrafficFigure = (typeof trafficFigures)[number]

/**
 * The windows of time that are counted, each divided into periods. Periods are aligned to UTC, so
 * that the numbers of several controllers can be added.
 */
export const trafficSpans = {
  hour: { periodMs: 60_000, periods: 60 },
  day: { periodMs: 15 * 60_000, periods: 96 },
} as const
export type TrafficSpan = keyof typeof trafficSpans

/** The figures of each period of both spans in sequence, the oldest period first. */
export type TrafficSeries = Readonly<Record<TrafficSpan, readonly number[]>>

/** Traffic of one record; the numbers are either one sum for each span, or a series. */
export interface RecordTraffic {
  readonly id: string
  readonly figures: TrafficSeries
}

/** Sums of each counted record. */
export interface TrafficTotals {
  readonly rows: readonly RecordTraffic[]
  /** Sums of all traffic that is not in a row. */
  readonly other: TrafficSeries
}

/**
 * The traffic that one controller has counted. Spans end with the period that contains
 * `nowMs`, UTC.
 */
export interface LocalTraffic {
  totals(kind: TrafficKind, nowMs: number): TrafficTotals
  /** Records without traffic are left out. */
  series(kind: TrafficKind, ids: readonly string[], nowMs: number): readonly RecordTraffic[]
}

/** Data of all controllers, and the controllers that did not respond in time. */
export interface FromCluster<T> {
  readonly found: T
  /** Controller ids, sorted; the data lacks what they have counted. */
  readonly silent: readonly string[]
}

/** The traffic that all controllers of the cluster have counted. */
export interface ClusterTraffic {
  totals(kind: TrafficKind, nowMs: number): Promise<FromCluster<TrafficTotals>>
  series(
    kind: TrafficKind,
    ids: readonly string[],
    nowMs: number,
    /** Controllers that have just not responded, and that are not waited for again. */
    silent?: readonly string[],
  ): Promise<FromCluster<readonly RecordTraffic[]>>
}
