import type { Clock } from '../../lib/clock.ts'
import type { CircuitUsage, Observation, RouterMetrics } from '../../ports/observations.ts'
import type { LiveCircuit } from '../../ports/live-table.ts'
import type { StateView } from '../../ports/state-view.ts'
import {
  type LocalTraffic,
  type RecordTraffic,
  type TrafficCounterName,
  type TrafficKind,
  type TrafficTotals,
  trafficSpans,
} from '../../ports/traffic.ts'
import { trafficLimits } from './limits.ts'
import { TrackedTraffic } from './tracked-traffic.ts'

interface TrafficCountsDeps {
  readonly state: Pick<StateView, 'get'>
  /** Returns a circuit that this controller owns. */
  readonly circuit: (id: string) => Pick<LiveCircuit, 'serviceId'> | undefined
  readonly clock: Pick<Clock, 'nowMs'>
}

/** Bytes that one report adds to one record. */
interface CountedBytes {
  readonly kind: TrafficKind
  readonly id: string
  readonly figure: 'rxBytes' | 'txBytes'
  readonly lengthS: number
  bytes: number
}

const LINK_LATENCY = /^link\..+\.latency$/
const NS_PER_MS = 1_000_000

/**
 * Counts the traffic of services and routers from the observations of this controller, for the last
 * hour and the last day. The counts are lost when the controller stops.
 *
 * Bytes come from the usage reports of routers, circuits and their latency from circuits that this
 * controller created, failures from its dials, the latency of routers from their metrics.
 */
export class TrafficCounts implements LocalTraffic {
  readonly #deps: TrafficCountsDeps
  readonly #tracked: Readonly<Record<TrafficKind, TrackedTraffic>>

  constructor(deps: TrafficCountsDeps) {
    this.#deps = deps
    const { trafficServicesMax, trafficRoutersMax } = trafficLimits
    const isKnown = (kind: TrafficKind) => (id: string) => deps.state.get(kind, id) !== undefined
    this.#tracked = {
      service: new TrackedTraffic(trafficServicesMax, isKnown('service')),
      router: new TrackedTraffic(trafficRoutersMax, isKnown('router')),
    }
  }

  /** Bytes of memory of all counts. */
  get bytes(): number {
    return this.#tracked.service.bytes + this.#tracked.router.bytes
  }

  note(fact: Observation): void {
    if (fact.kind === 'circuit') {
      if (fact.type === 'created') this.#onCreated(fact.circuit, fact.layMs ?? 0)
    } else if (fact.kind === 'dial') {
      if (fact.result === 'fail') this.#count('service', fact.serviceId, 'dialFailures', 1)
      else if (fact.result !== 'success') this.#onAttemptFailed(fact.terminatorId)
    } else if (fact.kind === 'routerMetrics') {
      this.#onReport(fact.metrics)
    }
  }

  totals(kind: TrafficKind, nowMs: number): TrafficTotals {
    return this.#tracked[kind].totals(nowMs)
  }

  series(kind: TrafficKind, ids: readonly string[], nowMs: number): readonly RecordTraffic[] {
    return this.#tracked[kind].series(ids, nowMs)
  }

  #onCreated({ serviceId, routerIds }: LiveCircuit, layMs: number): void {
    this.#count('service', serviceId, 'circuits', 1)
    this.#addLatency('service', serviceId, layMs)
    for (const routerId of routerIds) this.#count('router', routerId, 'circuits', 1)
  }

  #onAttemptFailed(terminatorId: string): void {
    const routerId = this.#deps.state.get('terminator', terminatorId)?.routerId
    if (routerId !== undefined) this.#count('router', routerId, 'dialFailures', 1)
  }

  #onReport({ routerId, figures, usages }: RouterMetrics): void {
    for (const { name, type, values } of figures) {
      const { mean = NaN } = values
      if (type !== 'histogram' || !LINK_LATENCY.test(name)) continue
      this.#addLatency('router', routerId, mean / NS_PER_MS)
    }
    // Adds the usages up first, because a report has one usage for each circuit, side and
    // direction.
    const sums = new Map<string, CountedBytes>()
    for (const usage of usages) {
      for (const one of this.#bytesOf(routerId, usage)) {
        const key = `${one.kind} ${one.figure} ${one.lengthS} ${one.id}`
        const sum = sums.get(key)
        if (sum === undefined) sums.set(key, one)
        else sum.bytes += one.bytes
      }
    }
    for (const { kind, id, figure, bytes, lengthS } of sums.values()) {
      this.#count(kind, id, figure, bytes, lengthS * 1000)
    }
  }

  /**
   * Bytes that a usage adds to the router and, if measured at the client's side, to the service.
   */
  #bytesOf(routerId: string, usage: CircuitUsage): readonly CountedBytes[] {
    const { kind, circuitId, bytes, lengthS, tags } = usage
    // Ignores an invalid number: the router chooses it, and a number that is not a count would make
    // every sum useless.
    // @guard traffic-of-others--number
    if (!Number.isSafeInteger(bytes) || bytes <= 0) return []
    const figure = kind.endsWith('.rx') ? 'rxBytes' : 'txBytes'
    const ofRouter = { kind: 'router', id: routerId, figure, bytes, lengthS } as const
    if (!kind.startsWith('ingress.')) return [ofRouter]
    const id = tags['serviceId'] ?? this.#deps.circuit(circuitId)?.serviceId ?? ''
    return [ofRouter, { kind: 'service', id, figure, bytes, lengthS }]
  }

  #addLatency(kind: TrafficKind, id: string, latencyMs: number): void {
    if (!(latencyMs >= 0 && latencyMs <= trafficSpans.day.periodMs)) return
    this.#count(kind, id, 'latencyMs', latencyMs)
    this.#count(kind, id, 'latencies', 1)
  }

  /**
   * @param intervalMs length of the interval, which ends now, over which the amount is distributed;
   * 0: count it now.
   */
  #count(
    kind: TrafficKind,
    id: string,
    figure: TrafficCounterName,
    amount: number,
    intervalMs = 0,
  ): void {
    const toMs = this.#deps.clock.nowMs()
    const isInterval = intervalMs > 0
    const lengthMs = isInterval ? Math.min(intervalMs, trafficLimits.trafficIntervalMsMax) : 0
    this.#tracked[kind].add(id, figure, amount, { fromMs: toMs - lengthMs, toMs })
  }
}
