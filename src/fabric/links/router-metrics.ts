import type { Metrics } from '../../../proto/gen/router_pb.ts'
import { copyPrefix } from '../../lib/text/copy-prefix.ts'
import {
  type CircuitUsage,
  type NamedMetric,
  type RouterMetrics,
  type UsageKind,
  usageKinds,
} from '../../ports/observations.ts'
import { routerLimits } from '../limits.ts'
import { reportedTimeMs } from '../reported-time.ts'

const { routerFiguresMax, routerTextCharactersMax, routerUsagesMax } = routerLimits
const TAGS_MAX = 32
const kinds: ReadonlySet<string> = new Set(usageKinds)

/** The metrics in a router's report, up to a maximum number. */
export function readRouterMetrics(routerId: string, metrics: Metrics): RouterMetrics {
  const { seconds = 0n, nanos = 0 } = metrics.timestamp ?? {}
  const figures: NamedMetric[] = []
  addFigures(figures, metrics.intValues, 'intValue', (value) => ({ value: Number(value) }))
  addFigures(figures, metrics.floatValues, 'floatValue', (value) => ({ value }))
  addFigures(figures, metrics.histograms, 'histogram', ({ count, min, max, mean }) => ({
    count: Number(count),
    min: Number(min),
    max: Number(max),
    mean,
  }))
  return {
    routerId,
    eventId: bounded(metrics.eventId),
    atMs: reportedTimeMs(seconds * 1000n + BigInt(Math.floor(nanos / 1_000_000))),
    tags: boundedTags(metrics.tags),
    figures,
    usages: usagesIn(metrics),
  }
}

/** Adds values until the maximum number is reached. */
function addFigures<T>(
  figures: NamedMetric[],
  given: Readonly<Record<string, T>>,
  type: NamedMetric['type'],
  valuesOf: (value: T) => Readonly<Record<string, number>>,
): void {
  for (const [name, value] of Object.entries(given)) {
    if (figures.length >= routerFiguresMax) return
    figures.push({ name: bounded(name), type, values: valuesOf(value) })
  }
}

/**
 * Byte counts of circuits in the metrics. Skips kinds of counters that OpenZiti does not define.
 */
function usagesIn({ intervalCounters, usageCounters }: Metrics): readonly CircuitUsage[] {
  const usages: CircuitUsage[] = []
  const add = (kind: string, usage: Omit<CircuitUsage, 'kind'>): boolean => {
    if (kinds.has(kind)) usages.push({ ...usage, kind: kind as UsageKind })
    return usages.length < routerUsagesMax
  }
  for (const { intervalStartUtc, intervalLength, buckets } of usageCounters) {
    const interval = { startS: Number(intervalStartUtc), lengthS: Number(intervalLength) }
    for (const [id, bucket] of Object.entries(buckets)) {
      const of = { ...interval, circuitId: bounded(id), tags: boundedTags(bucket.tags) }
      for (const [kind, bytes] of Object.entries(bucket.values)) {
        if (!add(kind, { ...of, bytes: Number(bytes) })) return usages
      }
    }
  }
  for (const [name, { intervalLength, buckets }] of Object.entries(intervalCounters)) {
    for (const { intervalStartUtc, values } of buckets) {
      const interval = { startS: Number(intervalStartUtc), lengthS: Number(intervalLength) }
      for (const [id, bytes] of Object.entries(values)) {
        const usage = { ...interval, circuitId: bounded(id), bytes: Number(bytes), tags: {} }
        if (!add(name.replace(/^usage\./, ''), usage)) return usages
      }
    }
  }
  return usages
}

function boundedTags(given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const tags = Object.entries(given).slice(0, TAGS_MAX)
  return Object.fromEntries(tags.map(([name, text]) => [bounded(name), bounded(text)]))
}

function bounded(text: string): string {
  return copyPrefix(text, routerTextCharactersMax)
}
