import { tunnelLimits } from './limits.ts'

/**
 * `refused`: an edge router refused a dial, or a controller refused a log-in or poll. `failed`: any
 * other reason, for example that a controller refused the service session for a dial.
 */
const results = ['success', 'refused', 'failed'] as const
export type CountedResult = (typeof results)[number]

/**
 * Counts by result since the start. Every result is present from the beginning, because a rate over
 * a counter that appears later misses its first events.
 */
export class ResultCounts {
  readonly #counts = new Map<CountedResult, number>(results.map((result) => [result, 0]))

  add(result: CountedResult): void {
    this.#counts.set(result, (this.#counts.get(result) ?? 0) + 1)
  }

  get values(): ReadonlyMap<CountedResult, number> {
    return this.#counts
  }
}

/** Value of the label for all services that have no separate series. */
const OTHER_SERVICES = ''

/**
 * Counts by service and result. Only a limited number of services, in the order in which they
 * became known, have separate series.
 */
export class ServiceCounts {
  readonly #services = new Map<string, ResultCounts>([[OTHER_SERVICES, new ResultCounts()]])

  /** Creates the series of services before their first event. */
  follow(services: Iterable<string>): void {
    for (const service of services) this.#of(service)
  }

  add(service: string, result: CountedResult): void {
    this.#of(service)?.add(result)
  }

  get values(): ReadonlyMap<string, ResultCounts> {
    return this.#services
  }

  #of(service: string): ResultCounts | undefined {
    const known = this.#services.get(service)
    if (known !== undefined) return known
    // @guard metrics-of-a-tunnel--services
    if (this.#services.size > tunnelLimits.measuredServicesMax) {
      return this.#services.get(OTHER_SERVICES)
    }
    const added = new ResultCounts()
    this.#services.set(service, added)
    return added
  }
}

/** Counts the events in the tunnel of one identity. */
export class TunnelCounts {
  readonly logIns = new ResultCounts()
  /** Polls of the controllers for changes; each poll also prolongs the session. */
  readonly polls = new ResultCounts()
  /** Connection attempts to edge routers. */
  readonly routerDials = new ResultCounts()
  lostRouters = 0
  /** Dials of services for programs of this host. */
  readonly dials = new ServiceCounts()
  /** Dials of clients to services that this host serves. */
  readonly hostedDials = new ServiceCounts()
}
