import { rfc3339Text } from '../http/responses/envelope.ts'
import {
  type TrafficCounterName,
  trafficCounterNames,
  type TrafficSeries,
  type TrafficSpan,
  trafficSpans,
} from '../../ports/traffic.ts'

type Totals = Readonly<Record<Exclude<TrafficCounterName, 'latencies' | 'latencyMs'>, number>> & {
  readonly latencyMs: number | null
}

/** The totals of one period or of a whole span, whose figures begin at index `from`. */
export function trafficTotalsView(figures: readonly number[], from = 0): Totals {
  const of = (name: TrafficCounterName): number =>
    figures[from + trafficCounterNames.indexOf(name)] ?? 0
  const count = (name: TrafficCounterName): number =>
    Math.min(Math.round(of(name)), Number.MAX_SAFE_INTEGER)
  const latencies = of('latencies')
  return {
    rxBytes: count('rxBytes'),
    txBytes: count('txBytes'),
    circuits: count('circuits'),
    dialFailures: count('dialFailures'),
    latencyMs: latencies === 0 ? null : Math.round((of('latencyMs') / latencies) * 100) / 100,
  }
}

/** The hour and the day of a record, each with the values of its periods and their sum. */
export function trafficSpansView(series: TrafficSeries | undefined, nowMs: number) {
  const of = (span: TrafficSpan) => spanView(span, series?.[span] ?? [], nowMs)
  return { hour: of('hour'), day: of('day') }
}

function spanView(span: TrafficSpan, figures: readonly number[], nowMs: number) {
  const { periodMs, periods } = trafficSpans[span]
  const width = trafficCounterNames.length
  const views = Array.from({ length: periods }, (_, n) => trafficTotalsView(figures, n * width))
  const sums = trafficCounterNames.map((_, figure) => {
    let sum = 0
    for (let at = figure; at < figures.length; at += width) sum += figures[at] ?? 0
    return sum
  })
  return {
    periodSeconds: periodMs / 1000,
    startedAt: rfc3339Text((Math.floor(nowMs / periodMs) - periods + 1) * periodMs),
    rxBytes: views.map((one) => one.rxBytes),
    txBytes: views.map((one) => one.txBytes),
    circuits: views.map((one) => one.circuits),
    dialFailures: views.map((one) => one.dialFailures),
    latencyMs: views.map((one) => one.latencyMs),
    totals: trafficTotalsView(sums),
  }
}
