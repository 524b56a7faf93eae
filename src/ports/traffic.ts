/** Kinds of records whose traffic is counted. */
export const trafficKinds = ['service', 'router'] as const
export type TrafficKind = (typeof trafficKinds)[number]

/**
 * Counters of one period, in the order in which rings and messages between controllers contain
 * them. `rxBytes` and `txBytes`: bytes that routers read and wrote; for a service, only on the
 * client side of circuits. `latencyMs` is the sum of `latencies` values.
 */
export const trafficCounterNames = [
  'rxBytes',
  'txBytes',
  'circuits',
  'dialFailures',
  'latencyMs',
  'latencies',
] as const
export type TrafficCounterName = (typeof trafficCounterNames)[number]

/**
 * Spans of time for which controllers count traffic, each divided into periods. Periods are aligned
 * to UTC, so that the counters of several controllers can be added.
 */
export const trafficSpans = {
  hour: { periodMs: 60_000, periods: 60 },
  day: { periodMs: 15 * 60_000, periods: 96 },
} as const
export type TrafficSpan = keyof typeof trafficSpans

/** For each span, the figures of its periods in sequence, the oldest period first. */
export type TrafficSeries = Readonly<Record<TrafficSpan, readonly number[]>>

/**
 * Traffic of one record. `figures` contain either one sum for each span, or one number for each
 * period.
 */
export interface RecordTraffic {
  readonly id: string
  readonly figures: TrafficSeries
}

/** Sums of the traffic of all records of a kind. */
export interface TrafficTotals {
  readonly rows: readonly RecordTraffic[]
  /** Sums of the traffic of all records that `rows` does not contain. */
  readonly other: TrafficSeries
}

/**
 * The traffic that one controller has counted. Each span ends with the period that contains
 * `nowMs`, UTC ms.
 */
export interface LocalTraffic {
  totals(kind: TrafficKind, nowMs: number): TrafficTotals
  /** Traffic of the given records by period. The result omits records without traffic. */
  series(kind: TrafficKind, ids: readonly string[], nowMs: number): readonly RecordTraffic[]
}

/** A result from all controllers, and the ids of the controllers that did not respond in time. */
export interface ClusterWideResult<T> {
  readonly found: T
  /**
   * Ids of the controllers that did not respond, sorted. `found` lacks the traffic that they
   * counted.
   */
  readonly silent: readonly string[]
}

/** The traffic that all controllers of the cluster have counted. */
export interface ClusterTraffic {
  totals(kind: TrafficKind, nowMs: number): Promise<ClusterWideResult<TrafficTotals>>
  series(
    kind: TrafficKind,
    ids: readonly string[],
    nowMs: number,
    /**
     * Controllers that did not respond to the previous request, so that this call does not wait for
     * them.
     */
    silent?: readonly string[],
  ): Promise<ClusterWideResult<readonly RecordTraffic[]>>
}
