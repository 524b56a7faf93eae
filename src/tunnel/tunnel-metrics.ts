import type { Metric, MetricSample } from '../overlay/monitoring/prometheus-metrics.ts'
import type { ResultCounts, ServiceCounts, TunnelCounts } from './tunnel-counts.ts'
import { tunnelLimits } from './limits.ts'

/** Values of one identity's tunnel at the time of a scrape. */
export interface TunnelMetricValues {
  readonly counts: TunnelCounts
  /** Expiry of the identity's certificate, UTC ms. */
  readonly certificateNotAfterMs: number
  readonly hasSession: boolean
  readonly knownControllers: number
  readonly routers: readonly {
    readonly name: string
    readonly isConnected: boolean
    /**
     * Round trip of the last latency probe, ms; before the first response, the duration of the
     * dial, and before that Infinity.
     */
    readonly roundTripMs: number
  }[]
  readonly dialableServices: number
  readonly hostableServices: number
  /** Number of edge routers that host each terminator; a service may have several terminators. */
  readonly terminators: readonly { readonly service: string; readonly hostedAt: number }[]
  readonly openCircuits: number
  readonly receivedBytes: number
  readonly sentBytes: number
}

interface MeasuredTunnel {
  /** Path of the tunnel's identity file, as log lines contain it. */
  readonly file: string
  readonly figures: TunnelMetricValues
}

const PREFIX = 'flotilla_tunnel_'

/** The metrics of a tunnel program with one or more identities. */
export function tunnelMetrics(
  { mode, version }: { readonly mode: string; readonly version: string },
  tunnels: readonly MeasuredTunnel[],
): Metric[] {
  return [
    {
      type: 'gauge',
      name: `${PREFIX}build_info`,
      help: 'Always 1; the labels hold mode and version.',
      labelNames: ['mode', 'version'],
      samples: [{ labels: { mode, version }, value: 1 }],
    },
    ...sessionMetrics(tunnels),
    ...routerMetrics(tunnels),
    ...serviceMetrics(tunnels),
    ...circuitMetrics(tunnels),
  ]
}

function sessionMetrics(tunnels: readonly MeasuredTunnel[]): Metric[] {
  return [
    gauge(
      'certificate_not_after_timestamp_seconds',
      'Expiry of the certificate of the identity, Unix time.',
      tunnels,
      ({ figures }) => Math.floor(figures.certificateNotAfterMs / 1000),
    ),
    gauge('session_open', '1 while an API session is open.', tunnels, ({ figures }) =>
      figures.hasSession ? 1 : 0,
    ),
    gauge(
      'controllers_known',
      'Number of client API addresses in the list of controllers that a controller sent.',
      tunnels,
      ({ figures }) => figures.knownControllers,
    ),
    counter(
      'log_ins_total',
      'Log-ins at controllers, by result; after a session has ended, the tunnel logs in again.',
      tunnels,
      ({ logIns }) => logIns,
    ),
    counter(
      'controller_polls_total',
      'Polls of controllers, by result; a poll keeps the session alive and reads changes.',
      tunnels,
      ({ polls }) => polls,
    ),
  ]
}

function routerMetrics(tunnels: readonly MeasuredTunnel[]): Metric[] {
  return [
    gauge(
      'edge_routers_known',
      'Number of edge routers that the identity may use.',
      tunnels,
      ({ figures }) => figures.routers.length,
    ),
    gauge(
      'edge_routers_connected',
      'Edge routers with an open channel.',
      tunnels,
      ({ figures }) => figures.routers.filter(({ isConnected }) => isConnected).length,
    ),
    {
      type: 'gauge',
      name: `${PREFIX}edge_router_latency_seconds`,
      help: 'Round trip of the last probe of a connected edge router.',
      labelNames: ['file', 'router'],
      samples: tunnels.flatMap(({ file, figures }) =>
        figures.routers.flatMap(({ name, isConnected, roundTripMs }) =>
          isConnected && Number.isFinite(roundTripMs)
            ? [{ labels: { file, router: name }, value: roundTripMs / 1000 }]
            : [],
        ),
      ),
    },
    counter(
      'edge_router_dials_total',
      'Attempts to connect to an edge router by result.',
      tunnels,
      ({ routerDials }) => routerDials,
    ),
    {
      type: 'counter',
      name: `${PREFIX}edge_routers_lost_total`,
      help: 'Channels that ended, to edge routers that the identity may still use.',
      labelNames: ['file'],
      samples: tunnels.map(({ file, figures }) => ({
        labels: { file },
        value: figures.counts.lostRouters,
      })),
    },
  ]
}

function serviceMetrics(tunnels: readonly MeasuredTunnel[]): Metric[] {
  return [
    {
      type: 'gauge',
      name: `${PREFIX}services`,
      help: 'Services that the identity may use, by permission.',
      labelNames: ['file', 'permission'],
      samples: tunnels.flatMap(({ file, figures }) => [
        { labels: { file, permission: 'Dial' }, value: figures.dialableServices },
        { labels: { file, permission: 'Bind' }, value: figures.hostableServices },
      ]),
    },
    {
      type: 'gauge',
      name: `${PREFIX}hosted_terminators`,
      help: `Terminators at edge routers by service; 0: the tunnel should host the service, but has no terminator for it. Covers the first ${tunnelLimits.measuredServicesMax} services of an identity.`,
      labelNames: ['file', 'service'],
      samples: tunnels.flatMap(hostedSamples),
    },
    serviceCounter(
      'dials_total',
      'Circuits that programs on this host requested, by service and result.',
      tunnels,
      ({ dials }) => dials,
    ),
    serviceCounter(
      'hosted_dials_total',
      'Circuits that clients requested to services that this host serves, by service and result.',
      tunnels,
      ({ hostedDials }) => hostedDials,
    ),
  ]
}

function hostedSamples({ file, figures }: MeasuredTunnel): MetricSample[] {
  const hosted = new Map<string, number>()
  for (const { service, hostedAt } of figures.terminators) {
    hosted.set(service, (hosted.get(service) ?? 0) + hostedAt)
  }
  return [...hosted]
    .slice(0, tunnelLimits.measuredServicesMax)
    .map(([service, value]) => ({ labels: { file, service }, value }))
}

function circuitMetrics(tunnels: readonly MeasuredTunnel[]): Metric[] {
  return [
    gauge(
      'circuits',
      'Open circuits; one with both endpoints in the tunnel counts twice.',
      tunnels,
      ({ figures }) => figures.openCircuits,
    ),
    {
      type: 'counter',
      name: `${PREFIX}circuit_bytes_total`,
      help: 'Bytes of circuit payloads, including retransmissions; encrypted payloads are counted with their encrypted size.',
      labelNames: ['file', 'direction'],
      samples: tunnels.flatMap(({ file, figures }) => [
        { labels: { file, direction: 'rx' }, value: figures.receivedBytes },
        { labels: { file, direction: 'tx' }, value: figures.sentBytes },
      ]),
    },
  ]
}

function gauge(
  name: string,
  help: string,
  tunnels: readonly MeasuredTunnel[],
  read: (tunnel: MeasuredTunnel) => number,
): Metric {
  return {
    type: 'gauge',
    name: PREFIX + name,
    help,
    labelNames: ['file'],
    samples: tunnels.map((tunnel) => ({ labels: { file: tunnel.file }, value: read(tunnel) })),
  }
}

function counter(
  name: string,
  help: string,
  tunnels: readonly MeasuredTunnel[],
  read: (counts: TunnelCounts) => ResultCounts,
): Metric {
  return {
    type: 'counter',
    name: PREFIX + name,
    help,
    labelNames: ['file', 'result'],
    samples: tunnels.flatMap(({ file, figures }) =>
      Array.from(read(figures.counts).values, ([result, value]) => ({
        labels: { file, result },
        value,
      })),
    ),
  }
}

function serviceCounter(
  name: string,
  help: string,
  tunnels: readonly MeasuredTunnel[],
  read: (counts: TunnelCounts) => ServiceCounts,
): Metric {
  return {
    type: 'counter',
    name: PREFIX + name,
    help: `${help} Services after the first ${tunnelLimits.measuredServicesMax} are counted together, under an empty name.`,
    labelNames: ['file', 'service', 'result'],
    samples: tunnels.flatMap(({ file, figures }) =>
      Array.from(read(figures.counts).values).flatMap(([service, counts]) =>
        Array.from(counts.values, ([result, value]) => ({
          labels: { file, service, result },
          value,
        })),
      ),
    ),
  }
}
