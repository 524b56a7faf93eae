import { Counter, Gauge, type Registry } from 'prom-client'

type Add = (name: string, help: string, read: () => number) => void

/** A gauge whose value is read at each scrape. */
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

/** A counter whose value is read at each scrape. */
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
