import { Counter, Gauge, type Registry } from 'prom-client'

type Add = (name: string, help: string, read: () => number) => void

/** Creates a function that adds gauges, whose values are read at each scrape. */
export function createGaugeAdder(registry: Registry): Add {
  return (name, help, read) => {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read())
      },
    })
  }
}

/** Creates a function that adds counters, whose values are read at each scrape. */
export function createCounterAdder(registry: Registry): Add {
  return (name, help, read) => {
    new Counter({
      name,
      help,
      registers: [registry],
      collect() {
        this.reset()
        this.inc(read())
      },
    })
  }
}

/** The value of one record, for a gauge that has a series for each record. */
export interface RecordSample {
  readonly id: string
  readonly name: string
  readonly value: number
}

type RecordLabels = Readonly<Record<string, string>>

const noLabels: RecordLabels = {}

/**
 * Adds a gauge with a series for each record, which has the labels `id` and, with the name of the
 * record, `nameLabel`. The text of the labels is cached between scrapes, because building it takes
 * most of the time that the class Gauge needs for a scrape of 5000 records.
 */
export function addRecordGauge(
  registry: Registry,
  {
    name,
    help,
    nameLabel,
  }: { readonly name: string; readonly help: string; readonly nameLabel: string },
  read: () => Iterable<RecordSample>,
): void {
  let kept: ReadonlyMap<string, RecordLabels> = new Map()
  registerReadMetric(registry, { name, help, type: 'gauge' }, () => {
    const shown = new Map<string, RecordLabels>()
    const values = Array.from(read(), (record) => {
      const known = kept.get(record.id)
      const sharedLabels =
        known?.[nameLabel] === record.name ? known : { [nameLabel]: record.name, id: record.id }
      shown.set(record.id, sharedLabels)
      // The registry caches the text of labels by the object `sharedLabels`.
      return { labels: noLabels, sharedLabels, value: record.value }
    })
    kept = shown
    return values
  })
}

/**
 * Adds a metric whose values are read at each scrape. Does not use the metric classes of
 * prom-client.
 */
export function registerReadMetric(
  registry: Registry,
  about: { readonly name: string; readonly help: string; readonly type: 'gauge' | 'histogram' },
  read: () => readonly object[],
): void {
  const metric = {
    ...about,
    get: () => Promise.resolve({ ...about, aggregator: 'sum', values: read() }),
    reset: () => undefined,
  }
  // The cast is safe: the registry reads only the name and the values of a metric, but its types
  // require the classes of prom-client.
  registry.registerMetric(metric as unknown as Parameters<Registry['registerMetric']>[0])
}
