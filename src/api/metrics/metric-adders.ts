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
