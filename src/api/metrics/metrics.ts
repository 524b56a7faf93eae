import { Counter, Registry, collectDefaultMetrics } from 'prom-client'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { AppliedIndexView } from '../http/linearizable-reads.ts'
import { addDataPathMetrics, type DataPathMetricsSources } from './data-path-metrics.ts'
import { addHistogram } from './counted-histogram.ts'
import { addNetworkMetrics, type NetworkMetricsSources } from './network-metrics.ts'
import { addNodeMetrics, type NodeMetricsSources } from './node-metrics.ts'
import { createGaugeAdder } from './metric-adders.ts'

/** Operation that opens sessions without OIDC; only its requests are counted as log-ins. */
const LOG_IN = 'authenticate'
/**
 * Interval at which prom-client samples the lag of the event loop. The interval is long, because
 * each sample wakes the thread. `EventLoopDelay` samples more often, with a timer that runs anyway.
 */
const LAG_SAMPLE_MS = 1000
const BUCKET_BOUNDS_MS = [0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 10_000] as const

/**
 * Plain counters for one operation. A request only adds numbers; names and labels are built at each
 * scrape.
 */
export class OperationMetrics {
  readonly operationId: string
  readonly byStatus = new Map<number, number>()
  readonly buckets = new Float64Array(BUCKET_BOUNDS_MS.length)
  durationMsTotal = 0
  count = 0

  constructor(operationId: string) {
    this.operationId = operationId
  }

  record(status: number, durationMs: number): void {
    this.byStatus.set(status, (this.byStatus.get(status) ?? 0) + 1)
    this.count += 1
    this.durationMsTotal += durationMs
    for (let at = BUCKET_BOUNDS_MS.length - 1; at >= 0; at -= 1) {
      if (durationMs > (BUCKET_BOUNDS_MS[at] ?? 0)) break
      this.buckets[at] = (this.buckets[at] ?? 0) + 1
    }
  }
}

/** Metrics of one controller in the Prometheus text format. */
export class ControllerMetrics {
  readonly #registry = new Registry()
  readonly #operations = new Map<string, OperationMetrics>()

  /**
   * @param sources null: show no metrics of consensus, the log, the state machine, the mesh and the
   * event loops.
   * @param dataPath null: show no metrics of routers, circuits and services.
   */
  constructor(
    cluster: ClusterView,
    log: AppliedIndexView,
    network: NetworkMetricsSources,
    sources: NodeMetricsSources | null,
    dataPath: DataPathMetricsSources | null,
  ) {
    // Samples less often than by default: with the default period of 10 ms, sampling used a third
    // of the processor time of an idle controller.
    collectDefaultMetrics({ register: this.#registry, eventLoopMonitoringPrecision: LAG_SAMPLE_MS })
    this.#addHttp()
    this.#addCluster(cluster, log)
    addNetworkMetrics(this.#registry, network)
    if (sources !== null) addNodeMetrics(this.#registry, sources)
    if (dataPath !== null) addDataPathMetrics(this.#registry, dataPath)
  }

  of(operationId: string): OperationMetrics {
    const known = this.#operations.get(operationId)
    if (known !== undefined) return known
    const added = new OperationMetrics(operationId)
    this.#operations.set(operationId, added)
    return added
  }

  /** Number of requests since the start, and number of log-ins without OIDC. */
  totals(): { readonly requests: number; readonly logIns: number } {
    let requests = 0
    for (const { count } of this.#operations.values()) requests += count
    return { requests, logIns: this.#operations.get(LOG_IN)?.byStatus.get(200) ?? 0 }
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  text(): Promise<string> {
    return this.#registry.metrics()
  }

  #addHttp(): void {
    const operations = this.#operations
    const registers = [this.#registry]
    new Counter({
      name: 'flotilla_http_requests_total',
      help: 'Requests by operation and status.',
      labelNames: ['operation', 'status'],
      registers,
      collect() {
        this.reset()
        for (const { operationId, byStatus } of operations.values()) {
          for (const [status, count] of byStatus) {
            this.inc({ operation: operationId, status: String(status) }, count)
          }
        }
      },
    })
    new Counter({
      name: 'flotilla_log_in_failures_total',
      help: 'Failed log-ins without OIDC by status, such as 401 (wrong credentials) and 429 (throttled).',
      labelNames: ['status'],
      registers,
      collect() {
        this.reset()
        // Creates these series with 0 at the start, because a rate over a counter that appears
        // later misses its first events.
        for (const status of ['401', '429']) this.inc({ status }, 0)
        for (const [status, count] of operations.get(LOG_IN)?.byStatus ?? []) {
          if (status >= 400 && status < 500) this.inc({ status: String(status) }, count)
        }
      },
    })
    const duration = {
      name: 'flotilla_http_request_duration_seconds',
      help: 'Time from the end of the request headers to the start of the response.',
    }
    addHistogram(this.#registry, duration, BUCKET_BOUNDS_MS, () =>
      [...operations.values()].flatMap(({ operationId, count, durationMsTotal, buckets }) =>
        count === 0
          ? []
          : { labels: { operation: operationId }, count, sumMs: durationMsTotal, buckets },
      ),
    )
  }

  #addCluster(cluster: ClusterView, log: AppliedIndexView): void {
    const gauge = createGaugeAdder(this.#registry)
    const self = () => cluster.members().find((member) => member.id === cluster.selfId)
    gauge('flotilla_raft_applied_index', 'Applied log index.', () => log.appliedIndex)
    gauge('flotilla_raft_commit_index', 'Committed log index.', () => self()?.progress?.commit ?? 0)
    gauge(
      'flotilla_raft_persisted_index',
      'Log index durable in the state store.',
      () => self()?.progress?.persisted ?? 0,
    )
    gauge('flotilla_raft_term', 'Current Raft term.', () => self()?.progress?.term ?? 0)
    gauge('flotilla_raft_is_leader', '1 if this controller is the leader.', () =>
      cluster.leaderId() === cluster.selfId ? 1 : 0,
    )
    gauge(
      'flotilla_raft_leader_contact_seconds',
      'Time since the last contact with a leader.',
      () => cluster.leaderContactMs() / 1000,
    )
    gauge(
      'flotilla_cluster_members_connected',
      'Connected members, including this one.',
      () => cluster.members().filter((member) => member.connected).length,
    )
  }
}
