import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'

/** A metric of a router or tunnel with its current values. */
export interface Metric {
  readonly type: 'counter' | 'gauge'
  readonly name: string
  readonly help: string
  /** Labels of every sample; absent for a metric with one value. */
  readonly labelNames?: readonly string[]
  readonly samples: readonly MetricSample[]
}

export interface MetricSample {
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
}

export const prometheusContentType = Registry.PROMETHEUS_CONTENT_TYPE

/**
 * Interval at which the delay of the event loop is measured. Each measurement wakes the thread: at
 * the default of 10 ms, they take a third of the processor time of an idle process.
 */
const LAG_SAMPLE_MS = 1000

let ofProcess: Registry | null = null

/** Metrics of this process. The first call starts their collection. */
function processRegistry(): Registry {
  if (ofProcess !== null) return ofProcess
  ofProcess = new Registry()
  collectDefaultMetrics({ register: ofProcess, eventLoopMonitoringPrecision: LAG_SAMPLE_MS })
  return ofProcess
}

/**
 * The given metrics, and the metrics of the process (`process_…`, `nodejs_…`), in the Prometheus
 * text format.
 */
export async function formatPrometheusMetrics(metrics: Iterable<Metric>): Promise<string> {
  const registry = new Registry()
  for (const metric of metrics) add(registry, metric)
  return await Registry.merge([registry, processRegistry()]).metrics()
}

function add(registry: Registry, { type, name, help, labelNames = [], samples }: Metric): void {
  const about = { name, help, labelNames: [...labelNames], registers: [registry] }
  if (type === 'counter') {
    const counter = new Counter(about)
    for (const { labels = {}, value } of samples) counter.inc(labels, value)
    return
  }
  const gauge = new Gauge(about)
  for (const { labels = {}, value } of samples) gauge.set(labels, value)
}
