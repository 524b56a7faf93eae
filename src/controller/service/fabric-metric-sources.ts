import { DataPathCounts } from '../../api/metrics/data-path-counts.ts'
import type { DataPathMetricsSources } from '../../api/metrics/data-path-metrics.ts'
import { TrafficCounts } from '../../api/traffic/traffic-counts.ts'
import type { Router } from '../../entities/kinds/router.ts'
import type { StateMachine } from '../../fsm/state-machine.ts'
import { systemClock } from '../../lib/clock.ts'
import type { ObservationSink } from '../../ports/observations.ts'
import type { LiveCircuit, LiveTable } from '../../ports/live-table.ts'
import { CertificateError, parseCertificate } from '../../pki/certificate.ts'

/** Counters that this controller derives from its observations. */
export interface ObservationCounts {
  readonly counts: DataPathCounts
  readonly traffic: TrafficCounts
  readonly note: ObservationSink
}

export function countObservations(
  machine: Pick<StateMachine, 'get'>,
  circuits: () => Pick<LiveTable<LiveCircuit>, 'get'>,
): ObservationCounts {
  const counts = new DataPathCounts()
  const circuit = (id: string): LiveCircuit | undefined => circuits().get(id)
  const traffic = new TrafficCounts({ state: machine, circuit, clock: systemClock })
  const note: ObservationSink = (fact) => {
    counts.note(fact)
    traffic.note(fact)
  }
  return { counts, traffic, note }
}

/**
 * Functions that supply metrics about routers and services, from the records and their live status.
 */
export function fabricMetricSources(
  machine: Pick<StateMachine, 'countWith' | 'get' | 'routers' | 'sortedIds'>,
): Pick<DataPathMetricsSources, 'routers' | 'services'> {
  // Time at which each router's certificate expires. It is cached because parsing all certificates
  // at each scrape would take too long.
  const ends = new WeakMap<Router, number | null>()
  const notAfterMs = (router: Router): number | null => {
    const known = ends.get(router)
    if (known !== undefined) return known
    const end = endOf(router.certPem)
    ends.set(router, end)
    return end
  }
  return {
    *routers() {
      for (const id of machine.sortedIds('router')) {
        const router = machine.get('router', id)
        if (router === undefined || router.disabled || !router.isVerified) continue
        const isOnline = machine.routers.of(id) !== null
        yield { id, name: router.name, isOnline, notAfterMs: notAfterMs(router) }
      }
    },
    *services() {
      for (const id of machine.sortedIds('service')) {
        const service = machine.get('service', id)
        if (service === undefined) continue
        const terminatorCount = machine.countWith('terminator', 'serviceId', id)
        yield { id, name: service.name, terminatorCount }
      }
    },
  }
}

function endOf(pem: string | null): number | null {
  if (pem === null || pem === '') return null
  try {
    return parseCertificate(pem).notAfterMs
  } catch (error) {
    if (error instanceof CertificateError) return null
    throw error
  }
}
