import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

import { formatHostPort } from '../../lib/text/names.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import { createSniCallback } from '../../overlay/sockets/listener-certificates.ts'
import { readServerIdentity, type RouterIdentity } from '../identity/reloadable-identity.ts'
import { ProgramFailure } from '../../overlay/failure.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import { peerLeafDer } from '../../lib/runtime/peer-certificates.ts'
import { CertificateError, parseCertificate } from '../../pki/certificate.ts'
import { hasExternalSpiffeId } from '../../pki/spiffe.ts'
import {
  formatPrometheusMetrics,
  prometheusContentType,
} from '../../overlay/monitoring/prometheus-metrics.ts'
import {
  type MonitoringResponse,
  MonitoringServer,
  notFoundResponse,
} from '../../overlay/monitoring/monitoring-server.ts'
import { type RouterMetricValues, routerMetrics } from './prometheus.ts'
import { healthResponse, type HealthCheck } from './health-check.ts'

type WebConfig = RouterConfig['web'][number]

interface HealthServersDeps {
  readonly web: readonly WebConfig[]
  readonly identity: () => RouterIdentity
  readonly handshakeTimeoutMs: number
  readonly checks: readonly HealthCheck[]
  readonly figures: () => RouterMetricValues
  /** Version of this program. */
  readonly version: string
  readonly log: ProgramLogger
}

interface Credentials {
  readonly cert: string
  readonly key: string
  readonly ca: string
}

const METRICS_PATH = '/metrics'
const NO_MONITOR: MonitoringResponse = {
  status: 401,
  type: 'text/plain',
  text: "metrics need a client certificate of 'flotilla pki issue'\n",
}

const TLS_VERSIONS = { 'TLS1.2': 'TLSv1.2', 'TLS1.3': 'TLSv1.3' } as const

/** The HTTPS servers in `web`: health checks and metrics. */
export class HealthServers {
  readonly #deps: HealthServersDeps
  readonly #servers: MonitoringServer[] = []

  constructor(deps: HealthServersDeps) {
    this.#deps = deps
  }

  /** @throws {ProgramFailure} with the configuration path. */
  async start(): Promise<void> {
    for (const [at, web] of this.#deps.web.entries()) {
      for (const [number, point] of web.bindPoints.entries()) {
        await this.#open(web, `web[${at}]`, `web[${at}].bindPoints[${number}]`, point)
      }
    }
  }

  /** Ports on which the servers listen, in the order of the configuration. */
  get ports(): readonly number[] {
    return this.#servers.map(({ port }) => port)
  }

  /** Makes new connections use the current certificates. */
  renew(): void {
    for (const server of this.#servers) server.renew()
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()))
  }

  async #open(
    web: WebConfig,
    place: string,
    pointPlace: string,
    point: WebConfig['bindPoints'][number],
  ): Promise<void> {
    const { log, identity, handshakeTimeoutMs } = this.#deps
    const { options } = web
    const moved = point.newAddress
    const server = new MonitoringServer({
      tls: {
        options: {
          ...(web.identity === null ? { SNICallback: createSniCallback(identity) } : {}),
          minVersion: TLS_VERSIONS[options.minTLSVersion],
          maxVersion: TLS_VERSIONS[options.maxTLSVersion],
          requestCert: true,
          rejectUnauthorized: false,
        },
        credentials: () => this.#credentials(web, place),
        handshakeTimeoutMs,
      },
      readTimeoutMs: options.readTimeout,
      writeTimeoutMs: options.writeTimeout,
      idleTimeoutMs: options.idleTimeout,
      headers: moved === null ? {} : { 'ziti-ctrl-address': formatHostPort(moved) },
      answer: (request) => this.#answer(web, request),
      log,
    })
    await server.listen(point.interface, `${pointPlace}.interface`)
    this.#servers.push(server)
    const fields = { name: web.name, address: formatHostPort(point.interface) }
    log.info(
      { ...fields, apis: web.apis.map(({ binding }) => binding) },
      'monitoring server listens',
    )
  }

  /** As in OpenZiti, every path except that of the metrics returns the health checks. */
  async #answer({ apis }: WebConfig, request: IncomingMessage): Promise<MonitoringResponse> {
    const has = (name: WebConfig['apis'][number]['binding']): boolean =>
      apis.some(({ binding }) => binding === name)
    const url = URL.parse(request.url ?? '/', 'https://router')
    if (has('metrics') && url?.pathname === METRICS_PATH) {
      if (!isMonitor(request.socket)) return NO_MONITOR
      const { figures, identity, version } = this.#deps
      const text = await formatPrometheusMetrics(
        routerMetrics({ figures: figures(), identity: identity(), version }),
      )
      return { status: 200, type: prometheusContentType, text }
    }
    if (!has('health-checks')) return notFoundResponse
    const isShort = url?.searchParams.get('type') === 'short'
    const text = JSON.stringify(healthResponse(this.#deps.checks, isShort), null, 2)
    return { status: 200, type: 'application/json', text }
  }

  #credentials(web: WebConfig, place: string): Credentials {
    const own = web.identity
    const server =
      own === null ? this.#deps.identity().server : readServerIdentity(own, `${place}.identity`)
    if (server === null) {
      throw new ProgramFailure(
        `${place}: needs a server certificate; name one with identity.server_cert`,
      )
    }
    // TLS verifies a client certificate against the CA of the network, but also accepts clients
    // without a valid one; {@link isMonitor} checks them.
    const ca = this.#deps.identity().caPem
    return { cert: server.certificatePem, key: server.privateKeyPem, ca }
  }
}

/**
 * Whether the peer has a certificate for monitoring systems, which `flotilla pki issue` issues.
 * Routers, identities and controllers have certificates of the same authority, but are not
 * monitoring systems.
 */
function isMonitor(socket: Socket): boolean {
  // @guard metrics-of-a-router--chain
  if (!(socket instanceof TLSSocket) || !socket.authorized) return false
  const leaf = peerLeafDer(socket)
  if (leaf === null) return false
  try {
    // @guard metrics-of-a-router--kind
    return hasExternalSpiffeId(parseCertificate(leaf).uris)
  } catch (error) {
    if (error instanceof CertificateError) return false
    throw error
  }
}
