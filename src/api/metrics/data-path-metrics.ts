import { Counter, Gauge, type Registry } from 'prom-client'

import type { LiveChannel, LiveCircuit, LiveLink, LiveTable } from '../../ports/live-table.ts'
import type { DataPathCounts } from './data-path-counts.ts'
import { metricsLimits } from './limits.ts'
import { addRecordGauge, createCounterAdder, createGaugeAdder } from './metric-adders.ts'

/** An enrolled, enabled router whose metrics are shown. */
export interface MeasuredRouter {
  readonly id: string
  readonly name: string
  /** True: the router is connected to at least one controller. */
  readonly isOnline: boolean
  /** Expiry of the router's certificate, UTC ms; null if it has no certificate. */
  readonly notAfterMs: number | null
}

export interface MeasuredService {
  readonly id: string
  readonly name: string
  readonly terminatorCount: number
}

export interface DataPathMetricsSources {
  readonly counts: DataPathCounts
  /** The routers in the order of their IDs; read at each scrape. */
  readonly routers: () => Iterable<MeasuredRouter>
  /** The services in the order of their IDs; read at each scrape. */
  readonly services: () => Iterable<MeasuredService>
  readonly circuits: Pick<LiveTable<LiveCircuit>, 'size'>
  readonly channels: Pick<LiveTable<LiveChannel>, 'size'>
  readonly links: Pick<LiveTable<LiveLink>, 'list'>
}

const LINK_STATES = ['Connected', 'Pending', 'Down'] as const

/**
 * Adds metrics of routers, links, circuits and services. The series with the ID of a router or
 * service are equal on every controller. All others describe the channels, links, circuits and
 * dials of this controller.
 */
export function addDataPathMetrics(registry: Registry, sources: DataPathMetricsSources): void {
  addRouterMetrics(registry, sources)
  addCircuitMetrics(registry, sources)
  const terminators = {
    name: 'flotilla_service_terminators',
    help: `Terminators by service, of the first ${metricsLimits.measuredServicesMax} services by ID.`,
    nameLabel: 'service',
  }
  addRecordGauge(registry, terminators, function* () {
    for (const { id, name, terminatorCount } of firstOf(
      sources.services(),
      metricsLimits.measuredServicesMax,
    )) {
      yield { id, name, value: terminatorCount }
    }
  })
}

function addRouterMetrics(
  registry: Registry,
  { routers, channels, links }: DataPathMetricsSources,
): void {
  const registers = [registry]
  const first = () => firstOf(routers(), metricsLimits.measuredRoutersMax)
  const online = {
    name: 'flotilla_router_online',
    help: `1 if the enrolled router is connected to any controller, of the first ${metricsLimits.measuredRoutersMax} routers by ID.`,
    nameLabel: 'router',
  }
  addRecordGauge(registry, online, function* () {
    for (const { id, name, isOnline } of first()) yield { id, name, value: isOnline ? 1 : 0 }
  })
  const certificate = {
    name: 'flotilla_router_certificate_not_after_timestamp_seconds',
    help: 'Expiry of the certificate of a router, Unix time.',
    nameLabel: 'router',
  }
  addRecordGauge(registry, certificate, function* () {
    for (const { id, name, notAfterMs } of first()) {
      if (notAfterMs !== null) yield { id, name, value: Math.floor(notAfterMs / 1000) }
    }
  })
  const gauge = createGaugeAdder(registry)
  gauge(
    'flotilla_router_channels',
    'Routers that are connected to this controller.',
    () => channels.size,
  )
  new Gauge({
    name: 'flotilla_links',
    help: 'Links between routers that this controller knows, by state; Pending: this controller has no channel to one of the two routers.',
    labelNames: ['state'],
    registers,
    collect() {
      const counts = new Map(LINK_STATES.map((state) => [state as string, 0]))
      for (const { isDown, state } of links.list()) {
        const shown = isDown ? 'Down' : state
        counts.set(shown, (counts.get(shown) ?? 0) + 1)
      }
      for (const [state, count] of counts) this.set({ state }, count)
    },
  })
}

function addCircuitMetrics(registry: Registry, { circuits, counts }: DataPathMetricsSources): void {
  const registers = [registry]
  const counter = createCounterAdder(registry)
  createGaugeAdder(registry)(
    'flotilla_circuits',
    'Open circuits that this controller owns: it created them, or became their owner after another controller failed.',
    () => circuits.size,
  )
  counter('flotilla_circuits_created_total', 'Circuits created.', () => counts.createdCircuits)
  counter(
    'flotilla_circuits_rerouted_total',
    'Circuits that got another path.',
    () => counts.reroutedCircuits,
  )
  new Counter({
    name: 'flotilla_circuits_failed_total',
    help: 'Dials for which every attempt to create a circuit failed, by cause.',
    labelNames: ['cause'],
    registers,
    collect() {
      this.reset()
      for (const [cause, count] of counts.failedCircuits) this.inc({ cause }, count)
    },
  })
  new Counter({
    name: 'flotilla_dials_total',
    help: 'Attempts to create a circuit for a dial, by result; result fail: dials for which all attempts failed.',
    labelNames: ['result'],
    registers,
    collect() {
      this.reset()
      for (const [result, count] of counts.dials) this.inc({ result }, count)
    },
  })
}

function* firstOf<T>(all: Iterable<T>, max: number): Iterable<T> {
  let count = 0
  for (const one of all) {
    if (count >= max) return
    count += 1
    yield one
  }
}
