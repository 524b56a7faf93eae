import type { MetricsBatch } from '../../channel/messages/reports.ts'
import type { Metric, MetricSample } from '../../overlay/monitoring/prometheus-metrics.ts'
import type { RouterIdentity } from '../identity/reloadable-identity.ts'

export type RouterMetricValues = Pick<MetricsBatch, 'integers' | 'numbers' | 'latenciesNs'>

interface PrometheusSources {
  readonly figures: RouterMetricValues
  readonly identity: Pick<RouterIdentity, 'id' | 'leaf' | 'server'>
  readonly version: string
}

const NANOSECONDS_A_SECOND = 1e9
const PREFIX = 'flotilla_router_'

/** Metrics that only increase, by name in the router's reports, with their names for Prometheus. */
const COUNTERS: Readonly<Record<string, readonly [name: string, help: string]>> = {
  'forwarder.messages': ['forwarded_messages_total', 'Messages of circuits forwarded.'],
  'forwarder.bytes': ['forwarded_bytes_total', 'Bytes of circuits forwarded.'],
  'forwarder.retransmissions': ['retransmissions_total', 'Payloads that were retransmitted.'],
  'forwarder.faults': [
    'circuit_faults_total',
    'Messages that this router received for circuits without a route at this router.',
  ],
  'forwarder.usage_lost_bytes': [
    'usage_lost_bytes_total',
    'Bytes of circuits that usage reports lack, because too many circuits had unreported bytes.',
  ],
}

/**
 * Metrics that increase and decrease, by name in the router's reports, with their names for
 * Prometheus.
 */
const GAUGES: Readonly<Record<string, readonly [name: string, help: string]>> = {
  'ctrl.connected': ['controllers_connected', 'Connected controllers.'],
  'ctrl.known': ['controllers_known', 'Controllers of the cluster, as the router knows them.'],
  'link.count': ['links', 'Links to other routers.'],
  'forwarder.circuits': ['circuits', 'Circuits through this router.'],
  'forwarder.ends': [
    'circuit_ends',
    'Endpoints of circuits in this router, without those in clients.',
  ],
  'forwarder.buffered_bytes': [
    'buffered_bytes',
    'Bytes that are buffered at the endpoints of circuits.',
  ],
  'edge.connections': ['client_connections', 'Connections of clients.'],
  'edge.circuits': ['client_circuits', 'Circuits of clients.'],
  'edge.terminators': [
    'hosted_terminators',
    'Terminators of clients that host services through this router.',
  ],
  'edge.api_sessions': ['api_sessions', 'API sessions that the router knows.'],
  'process.rss': ['resident_memory_bytes', 'Resident memory of the process.'],
  'process.heap': ['heap_bytes', 'Memory of the JavaScript heap in use.'],
}

/** Names of the counters that `src/router/forward/circuit-traffic.ts` produces. */
const TRAFFIC = /^(ingress|egress|fabric)\.(rx|tx)\.(msgs|bytes)$/
const OF_LINK = /^link\.(.+)\.(latency|queue_time)$/
const DROPPED = 'link.dropped_msgs:'

/**
 * The metrics of a router for Prometheus: the values that it reports to controllers, converted to
 * seconds and bytes, and the expiry times of its certificates.
 */
export function routerMetrics({ identity, version, figures }: PrometheusSources): Metric[] {
  return [
    ...aboutRouter(identity, version),
    ...figureMetrics(figures),
    ...trafficMetrics(figures),
    ...linkMetrics(figures),
  ]
}

function aboutRouter(
  { id, leaf, server }: PrometheusSources['identity'],
  version: string,
): Metric[] {
  const certificates = { client: leaf, server: server?.leaf }
  return [
    {
      type: 'gauge',
      name: `${PREFIX}build_info`,
      help: 'Always 1; the labels hold ID and version.',
      labelNames: ['id', 'version'],
      samples: [{ labels: { id, version }, value: 1 }],
    },
    {
      type: 'gauge',
      name: `${PREFIX}own_certificate_not_after_timestamp_seconds`,
      help: 'Expiry of the certificates of this router, Unix time.',
      labelNames: ['certificate'],
      samples: Object.entries(certificates).flatMap(([certificate, found]) =>
        found === undefined
          ? []
          : [{ labels: { certificate }, value: Math.floor(found.notAfterMs / 1000) }],
      ),
    },
  ]
}

function figureMetrics({ integers, numbers }: RouterMetricValues): Metric[] {
  const counters = Object.entries(COUNTERS).map(([key, [name, help]]): Metric => {
    const value = integers[key] ?? 0
    return { type: 'counter', name: PREFIX + name, help, samples: [{ value }] }
  })
  const gauges = Object.entries(GAUGES).map(([key, [name, help]]): Metric => {
    // 0 if the router lacks the part that counts this metric, for example an edge listener.
    const value = integers[key] ?? 0
    return { type: 'gauge', name: PREFIX + name, help, samples: [{ value }] }
  })
  const cpu: Metric = {
    type: 'counter',
    name: `${PREFIX}cpu_seconds_total`,
    help: 'Processor time of the process.',
    samples: [{ value: numbers['process.cpu_seconds'] ?? 0 }],
  }
  return [...counters, ...gauges, cpu]
}

function trafficMetrics({ integers }: RouterMetricValues): Metric[] {
  const about =
    'at circuit endpoints of clients (ingress) and of hosts (egress), and at links (fabric); rx: received, tx: sent'
  const samplesIn = (unit: string): MetricSample[] =>
    Object.entries(integers).flatMap(([key, value]) => {
      const [, side = '', direction = '', found] = TRAFFIC.exec(key) ?? []
      return found === unit ? [{ labels: { side, direction }, value }] : []
    })
  const labelNames = ['side', 'direction']
  return [
    {
      type: 'counter',
      name: `${PREFIX}traffic_messages_total`,
      help: `Messages ${about}.`,
      labelNames,
      samples: samplesIn('msgs'),
    },
    {
      type: 'counter',
      name: `${PREFIX}traffic_bytes_total`,
      help: `Bytes ${about}.`,
      labelNames,
      samples: samplesIn('bytes'),
    },
  ]
}

function linkMetrics({ integers, latenciesNs }: RouterMetricValues): Metric[] {
  const labelNames = ['link']
  const secondsOf = (part: string): MetricSample[] =>
    Object.entries(latenciesNs).flatMap(([key, ns]) => {
      const [, link = '', found] = OF_LINK.exec(key) ?? []
      return found === part ? [{ labels: { link }, value: ns / NANOSECONDS_A_SECOND }] : []
    })
  const dropped = Object.entries(integers).flatMap(([key, value]) =>
    key.startsWith(DROPPED) ? [{ labels: { link: key.slice(DROPPED.length) }, value }] : [],
  )
  return [
    {
      type: 'gauge',
      name: `${PREFIX}link_latency_seconds`,
      help: 'Round trip of the last heartbeat of a link; 8888.9 while the other router does not respond.',
      labelNames,
      samples: secondsOf('latency'),
    },
    {
      type: 'gauge',
      name: `${PREFIX}link_queue_seconds`,
      help: 'Time that the first message in the queue of a link has waited.',
      labelNames,
      samples: secondsOf('queue_time'),
    },
    {
      type: 'counter',
      name: `${PREFIX}link_dropped_messages_total`,
      help: 'Messages that were dropped because the queue of a link was full.',
      labelNames,
      samples: dropped,
    },
  ]
}
