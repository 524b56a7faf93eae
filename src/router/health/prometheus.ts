import { Counter, Gauge, Registry } from 'prom-client'

import type { MetricsBatch } from '../../channel/messages/reports.ts'
import type { RouterIdentity } from '../identity/identity.ts'

export type RouterFigures = Pick<MetricsBatch, 'integers' | 'numbers' | 'latenciesNs'>

interface PrometheusSources {
  readonly figures: RouterFigures
  readonly identity: Pick<RouterIdentity, 'id' | 'leaf' | 'server'>
  readonly version: string
}

const NANOSECONDS_A_SECOND = 1e9
const PREFIX = 'flotilla_router_'

/** Metrics that only increase, with their names for Prometheus. */
const COUNTERS: Readonly<Record<string, readonly [name: string, help: string]>> = {
  'forwarder.messages': ['forwarded_messages_total', 'Messages of circuits forwarded.'],
  'forwarder.bytes': ['forwarded_bytes_total', 'Bytes of circuits forwarded.'],
  'forwarder.retransmissions': ['retransmissions_total', 'Payloads sent again.'],
  'forwarder.faults': ['circuit_faults_total', 'Messages of circuits that are not routed here.'],
  'forwarder.usage_lost_bytes': [
    'usage_lost_bytes_total',
    'Bytes whose usage could not be reported to a controller.',
  ],
}

/** Metrics that increase and decrease. */
const GAUGES: Readonly<Record<string, readonly [name: string, help: string]>> = {
  'ctrl.connected': ['controllers_connected', 'Connected controllers.'],
  'ctrl.known': ['controllers_known', 'Controllers of the cluster, as the router knows them.'],
  'link.count': ['links', 'Links to other routers.'],
  'forwarder.circuits': ['circuits', 'Circuits through this router.'],
  'forwarder.ends': ['circuit_ends', 'Ends of circuits at this router.'],
  'forwarder.buffered_bytes': ['buffered_bytes', 'Bytes that wait at ends of circuits.'],
  'edge.connections': ['client_connections', 'Connections of clients.'],
  'edge.circuits': ['client_circuits', 'Circuits of clients.'],
  'edge.terminators': ['hosted_terminators', 'Terminators of clients that host here.'],
  'edge.api_sessions': ['api_sessions', 'API sessions that the router knows.'],
  'process.rss': ['resident_memory_bytes', 'Resident memory of the process.'],
  'process.heap': ['heap_bytes', 'Memory of the JavaScript heap in use.'],
}

/** Names of the counters in `src/router/forward/traffic.ts`. */
const TRAFFIC = /^(ingress|egress|fabric)\.(rx|tx)\.(msgs|bytes)$/
const OF_LINK = /^link\.(.+)\.(latency|queue_time)$/
const DROPPED = 'link.dropped_msgs:'

/**
 * The metrics of a router in the Prometheus text format: the values that it reports to the
 * controllers, in seconds and bytes, and the expiry of its certificates.
 */
export async function prometheusText(sources: PrometheusSources): Promise<string> {
  const registry = new Registry()
  addAbout(registry, sources)
  addFigures(registry, sources.figures)
  addTraffic(registry, sources.figures)
  addLinks(registry, sources.figures)
  return await registry.metrics()
}

export const prometheusContentType = Registry.PROMETHEUS_CONTENT_TYPE

function addAbout(registry: Registry, { identity, version }: PrometheusSources): void {
  const registers = [registry]
  const info = new Gauge({
    name: `${PREFIX}build_info`,
    help: 'Always 1; the labels hold ID and version.',
    labelNames: ['id', 'version'],
    registers,
  })
  info.set({ id: identity.id, version }, 1)
  const ends = new Gauge({
    name: `${PREFIX}own_certificate_not_after_timestamp_seconds`,
    help: 'Expiry of the certificates of this router, Unix time.',
    labelNames: ['certificate'],
    registers,
  })
  const certificates = { client: identity.leaf, server: identity.server?.leaf }
  for (const [certificate, leaf] of Object.entries(certificates)) {
    if (leaf !== undefined) ends.set({ certificate }, Math.floor(leaf.notAfterMs / 1000))
  }
}

function addFigures(registry: Registry, { integers, numbers }: RouterFigures): void {
  const registers = [registry]
  for (const [key, [name, help]] of Object.entries(COUNTERS)) {
    new Counter({ name: PREFIX + name, help, registers }).inc(integers[key] ?? 0)
  }
  for (const [key, [name, help]] of Object.entries(GAUGES)) {
    const value = integers[key]
    if (value !== undefined) new Gauge({ name: PREFIX + name, help, registers }).set(value)
  }
  new Counter({
    name: `${PREFIX}cpu_seconds_total`,
    help: 'Processor time of the process.',
    registers,
  }).inc(numbers['process.cpu_seconds'] ?? 0)
}

function addTraffic(registry: Registry, { integers }: RouterFigures): void {
  const labelNames = ['side', 'direction'] as const
  const about =
    'at ends of clients (ingress), of hosts (egress) and at links (fabric); rx: received, tx: sent'
  const registers = [registry]
  const counters = {
    msgs: new Counter({
      name: `${PREFIX}traffic_messages_total`,
      help: `Messages ${about}.`,
      labelNames,
      registers,
    }),
    bytes: new Counter({
      name: `${PREFIX}traffic_bytes_total`,
      help: `Bytes ${about}.`,
      labelNames,
      registers,
    }),
  }
  for (const [key, value] of Object.entries(integers)) {
    const [, side = '', direction = '', unit] = TRAFFIC.exec(key) ?? []
    if (unit === 'msgs' || unit === 'bytes') counters[unit].inc({ side, direction }, value)
  }
}

function addLinks(registry: Registry, { integers, latenciesNs }: RouterFigures): void {
  const labelNames = ['link'] as const
  const registers = [registry]
  const gauges = {
    latency: new Gauge({
      name: `${PREFIX}link_latency_seconds`,
      help: 'Round trip of the last heartbeat of a link.',
      labelNames,
      registers,
    }),
    queue_time: new Gauge({
      name: `${PREFIX}link_queue_seconds`,
      help: 'Time that the first message waits at a link.',
      labelNames,
      registers,
    }),
  }
  for (const [key, ns] of Object.entries(latenciesNs)) {
    const [, link = '', part] = OF_LINK.exec(key) ?? []
    if (part === 'latency' || part === 'queue_time') {
      gauges[part].set({ link }, ns / NANOSECONDS_A_SECOND)
    }
  }
  const dropped = new Counter({
    name: `${PREFIX}link_dropped_messages_total`,
    help: 'Messages that a link had no room for.',
    labelNames,
    registers,
  })
  for (const [key, value] of Object.entries(integers)) {
    if (key.startsWith(DROPPED)) dropped.inc({ link: key.slice(DROPPED.length) }, value)
  }
}
