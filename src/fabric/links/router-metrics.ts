import type { Metrics } from '../../../proto/gen/router_pb.ts'
import { ownText } from '../../lib/text/own-text.ts'
import type { MetricFigure, RouterMetrics } from '../../ports/live-facts.ts'
import { routerLimits } from '../limits.ts'
import { toldTime } from '../told-time.ts'

const { routerFiguresMax, routerTextCharactersMax } = routerLimits
const TAGS_MAX = 32

/** What a router tells of itself, bounded: it does not decide how much of it is passed on. */
export function routerMetricsIn(routerId: string, metrics: Metrics): RouterMetrics {
  const { seconds = 0n, nanos = 0 } = metrics.timestamp ?? {}
  const figures: MetricFigure[] = []
  addFigures(figures, metrics.intValues, 'intValue', (value) => ({ value: Number(value) }))
  addFigures(figures, metrics.floatValues, 'floatValue', (value) => ({ value }))
  addFigures(figures, metrics.histograms, 'histogram', ({ count, min, max, mean }) => ({
    count: Number(count),
    min: Number(min),
    max: Number(max),
    mean,
  }))
  const tags = Object.entries(metrics.tags).slice(0, TAGS_MAX)
  return {
    routerId,
    eventId: bounded(metrics.eventId),
    atMs: toldTime(seconds * 1000n + BigInt(Math.floor(nanos / 1_000_000))),
    tags: Object.fromEntries(tags.map(([name, text]) => [bounded(name), bounded(text)])),
    figures,
  }
}

/** As many as there is room for. */
function addFigures<T>(
  figures: MetricFigure[],
  given: Readonly<Record<string, T>>,
  type: MetricFigure['type'],
  valuesOf: (value: T) => Readonly<Record<string, number>>,
): void {
  for (const [name, value] of Object.entries(given)) {
    if (figures.length >= routerFiguresMax) return
    figures.push({ name: bounded(name), type, values: valuesOf(value) })
  }
}

function bounded(text: string): string {
  return ownText(text, routerTextCharactersMax)
}
