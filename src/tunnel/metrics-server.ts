import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv4 } from 'node:net'

import { formatHostPort, type HostPort, parseHostPort } from '../lib/text/names.ts'
import type { ProgramLogger } from '../overlay/logger.ts'
import {
  formatPrometheusMetrics,
  type Metric,
  prometheusContentType,
} from '../overlay/monitoring/prometheus-metrics.ts'
import {
  type MonitoringResponse,
  MonitoringServer,
  notFoundResponse,
} from '../overlay/monitoring/monitoring-server.ts'
import { tunnelLimits } from './limits.ts'

interface MetricsServerDeps {
  readonly metrics: () => readonly Metric[]
  readonly log: ProgramLogger
}

const METRICS_PATH = '/metrics'
const OTHER_HOST: MonitoringResponse = {
  status: 421,
  type: 'text/plain',
  text: 'ask for this address by its number or as localhost\n',
}

const { metricsReadMs, metricsWriteMs, metricsIdleMs } = tunnelLimits

/**
 * Serves the metrics of a tunnel over plain HTTP, because an identity has no server certificate.
 * Everyone who can reach the address can read the metrics.
 * @throws {ProgramFailure} when it cannot listen.
 */
export async function startMetricsServer(
  bind: HostPort,
  { metrics, log }: MetricsServerDeps,
): Promise<MonitoringServer> {
  const server = new MonitoringServer({
    tls: null,
    readTimeoutMs: metricsReadMs,
    writeTimeoutMs: metricsWriteMs,
    idleTimeoutMs: metricsIdleMs,
    headers: {},
    answer: (request) => answer(request, bind, metrics),
    log,
  })
  await server.listen(bind, '--metrics')
  log.info({ address: formatHostPort({ ...bind, port: server.port }) }, 'serving metrics')
  return server
}

async function answer(
  request: IncomingMessage,
  { host }: HostPort,
  metrics: () => readonly Metric[],
): Promise<MonitoringResponse> {
  // Refuses a foreign name (DNS rebinding): an attacker could resolve a domain to loopback, and a
  // page of that domain in a browser on this host could then read the metrics as same-origin
  // content.
  // @guard metrics-of-a-tunnel--name
  if (isLoopback(host) && !isThisHost(request.headers.host ?? '')) return OTHER_HOST
  const path = request.url?.split('?')[0]
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (!isRead || path !== METRICS_PATH) return notFoundResponse
  return {
    status: 200,
    type: prometheusContentType,
    text: await formatPrometheusMetrics(metrics()),
  }
}

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8)
LOOPBACK.addAddress('::1', 'ipv6')

function isLoopback(address: string): boolean {
  return LOOPBACK.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
}

/** @param header with or without a port. */
function isThisHost(header: string): boolean {
  const host = parseHostPort(header)?.host ?? header.replaceAll(/^\[|\]$/g, '')
  return isIP(host) !== 0 || host.toLowerCase() === 'localhost'
}
