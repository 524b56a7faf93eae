import type { MetricValue, Registry } from 'prom-client'

import { registerReadMetric } from './metric-adders.ts'

/** One series of a histogram whose counters belong to other code. */
interface HistogramSeries {
  readonly labels: Readonly<Record<string, string>>
  readonly count: number
  readonly sumMs: number
  /** Cumulative counts: observations up to the upper bound with the same index. */
  readonly buckets: ArrayLike<number>
}

/**
 * Adds a histogram in seconds, as Prometheus expects. Its counters are plain numbers in
 * milliseconds, which frequently executed code updates.
 */
export function addHistogram(
  registry: Registry,
  { name, help }: { readonly name: string; readonly help: string },
  boundsMs: readonly number[],
  read: () => Iterable<HistogramSeries>,
): void {
  registerReadMetric(registry, { name, help, type: 'histogram' }, () =>
    Array.from(read()).flatMap((series) => valuesOf(name, boundsMs, series)),
  )
}

function valuesOf(
  name: string,
  boundsMs: readonly number[],
  { labels, count, sumMs, buckets }: HistogramSeries,
): (MetricValue<string> & { metricName: string })[] {
  const bucket = (le: string, value: number) => ({
    labels: { ...labels, le },
    value,
    metricName: `${name}_bucket`,
  })
  return [
    ...boundsMs.map((bound, at) => bucket(String(bound / 1000), buckets[at] ?? 0)),
    bucket('+Inf', count),
    { labels, value: sumMs / 1000, metricName: `${name}_sum` },
    { labels, value: count, metricName: `${name}_count` },
  ]
}
