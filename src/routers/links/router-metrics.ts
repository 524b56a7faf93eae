import type { Metrics } from '../../../proto/gen/router_pb.ts'
import type { MetricFigure, RouterMetrics } from '../../ports/live-facts.ts'
import { routerLimits } from '../limits.ts'

const { routerFiguresMax, routerTextCharactersMax } = routerLimits
const TAGS_MAX = 32

/** What a router tells of itself, bounded: it does not decide how much of it is passed on. */
export function routerMetricsIn(routerId: string, metrics: Metrics): RouterMetrics {
  const { seconds = 0n, nanos = 0 } = metrics.timestamp ?? {}
  const figures = [
    ...figuresOf(metrics.intValues, 'intValue', (value) => ({ value: Number(value) })),
    ...figuresOf(metrics.floatValues, 'floatValue', (value) => ({ value })),
    ...figuresOf(metrics.histograms, 'histogram', ({ count, min, max, mean }) => ({
      ...{ count: Number(count), min: Number(min), max: Number(max), mean },
    })),
  ]
  const tags = Object.entries(metrics.tags).slice(0, TAGS_MAX)
  return {
    routerId,
    eventId: bounded(metrics.eventId),
    atMs: Number(seconds) * 1000 + Math.floor(nanos / 1_000_000),
    tags: Object.fromEntries(tags.map(([name, text]) => [bounded(name), bounded(text)])),
    figures: figures.slice(0, routerFiguresMax),
  }
}

function figuresOf<T>(
  given: Readonly<Record<string, T>>,
  type: MetricFigure['type'],
  valuesOf: (value: T) => Readonly<Record<string, number>>,
): MetricFigure[] {
  return Object.entries(given).map(([name, value]) => ({
    ...{ name: bounded(name), type, values: valuesOf(value) },
  }))
}

function bounded(text: string): string {
  return text.slice(0, routerTextCharactersMax)
}
