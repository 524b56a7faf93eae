import type { IncomingMessage } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

import { limitConnections } from '../../lib/bounds/connections.ts'
import { formatHostPort } from '../../lib/text/names.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import { certificateByName } from '../../overlay/sockets/listener-certificates.ts'
import { readServerIdentity, type RouterIdentity } from '../identity/identity.ts'
import { healthCheckLimits as limits } from './limits.ts'
import { ProgramFailure } from '../../overlay/failure.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import { peerLeafDer } from '../../lib/runtime/peer-certificates.ts'
import { CertificateError, parseCertificate } from '../../pki/certificate.ts'
import { hasExternalSpiffeId } from '../../pki/spiffe.ts'
import { prometheusContentType, prometheusText, type RouterFigures } from './prometheus.ts'
import { healthAnswer, type HealthCheck } from './checks.ts'
import { closeServer, listeningPort } from '../../lib/runtime/listening.ts'
import { bindServer } from '../../overlay/sockets/bind-server.ts'

type WebConfig = RouterConfig['web'][number]

interface HealthServersDeps {
  readonly web: readonly WebConfig[]
  readonly identity: () => RouterIdentity
  readonly handshakeTimeoutMs: number
  readonly checks: readonly HealthCheck[]
  readonly figures: () => RouterFigures
  /** Version of this program. */
  readonly version: string
  readonly log: ProgramLogger
}

interface Credentials {
  readonly cert: string
  readonly key: string
  readonly ca: string
}

interface Answer {
  readonly status: number
  readonly type: string
  readonly text: string
}

const METRICS_PATH = '/metrics'
const NO_MONITOR: Answer = {
  status: 401,
  type: 'text/plain',
  text: "metrics need a client certificate of 'flotilla pki issue'\n",
}
const NOT_FOUND: Answer = { status: 404, type: 'text/plain', text: 'not found\n' }

const TLS_VERSIONS = { 'TLS1.2': 'TLSv1.2', 'TLS1.3': 'TLSv1.3' } as const

/** The HTTPS servers in `web`: health checks and metrics. */
export class HealthServers {
  readonly #deps: HealthServersDeps
  readonly #servers: { readonly server: Server; readonly renew: () => void }[] = []

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

  /** Bound ports, in the order of the configuration. */
  get ports(): readonly number[] {
    return this.#servers.map(({ server }) => listeningPort(server))
  }

  /** New connections get the current certificates. */
  renew(): void {
    for (const { renew } of this.#servers) renew()
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.#servers.map(({ server }) => {
        const closed = closeServer(server)
        server.closeAllConnections()
        return closed
      }),
    )
  }

  async #open(
    web: WebConfig,
    place: string,
    pointPlace: string,
    point: WebConfig['bindPoints'][number],
  ): Promise<void> {
    const { log } = this.#deps
    const credentials = (): Credentials => this.#credentials(web, place)
    const { options } = web
    const server = createServer({
      ...credentials(),
      ...(web.identity === null ? { SNICallback: certificateByName(this.#deps.identity) } : {}),
      minVersion: TLS_VERSIONS[options.minTLSVersion],
      maxVersion: TLS_VERSIONS[options.maxTLSVersion],
      requestCert: true,
      rejectUnauthorized: false,
      requestTimeout: options.readTimeout,
      headersTimeout: options.readTimeout,
      keepAliveTimeout: options.idleTimeout,
      connectionsCheckingInterval: 1000,
    })
    server.maxConnections = limits.healthConnectionsMax
    server.setTimeout(options.readTimeout + options.writeTimeout)
    server.on('request', (request, response) => {
      const late = setTimeout(() => response.destroy(), options.writeTimeout)
      response.once('finish', () => clearTimeout(late))
      response.once('close', () => clearTimeout(late))
      void this.#answer(web, request).then(
        ({ status, type, text }) => {
          const moved = point.newAddress
          response.writeHead(status, {
            'content-type': type,
            'content-length': Buffer.byteLength(text),
            'cache-control': 'no-store',
            ...(moved === null ? {} : { 'ziti-ctrl-address': formatHostPort(moved) }),
          })
          response.end(request.method === 'HEAD' ? undefined : text)
        },
        (error: unknown) => {
          log.warn({ err: error }, 'a request to the health server failed')
          response.destroy()
        },
      )
      // Request bodies are ignored.
      request.resume()
    })
    server.on('tlsClientError', (_error, socket) => socket.destroy())
    limitConnections(server, {
      // @guard health-checks-kept-busy--held
      connectionsPerSourceMax: limits.healthConnectionsPerSourceMax,
      // @guard health-checks-kept-busy--time
      handshakeTimeoutMs: this.#deps.handshakeTimeoutMs,
      // @guard health-checks-kept-busy--all
      handshakesMax: limits.healthHandshakesMax,
      // @guard health-checks-kept-busy--source
      handshakesPerSourceMax: limits.healthHandshakesPerSourceMax,
    })
    await bindServer(server, point.interface, `${pointPlace}.interface`)
    server.on('error', (error) => log.warn({ err: error }, 'health server failed'))
    this.#servers.push({
      server,
      renew: () => {
        server.setSecureContext(credentials())
      },
    })
    log.info({ name: web.name, address: formatHostPort(point.interface) }, 'serving health checks')
  }

  /** Every path shows the health checks, as in OpenZiti, except that of the metrics. */
  async #answer({ apis }: WebConfig, request: IncomingMessage): Promise<Answer> {
    const has = (name: WebConfig['apis'][number]['binding']): boolean =>
      apis.some(({ binding }) => binding === name)
    const url = URL.parse(request.url ?? '/', 'https://router')
    if (has('metrics') && url?.pathname === METRICS_PATH) {
      if (!isMonitor(request.socket)) return NO_MONITOR
      const { figures, identity, version } = this.#deps
      const text = await prometheusText({ figures: figures(), identity: identity(), version })
      return { status: 200, type: prometheusContentType, text }
    }
    if (!has('health-checks')) return NOT_FOUND
    const isShort = url?.searchParams.get('type') === 'short'
    const text = JSON.stringify(healthAnswer(this.#deps.checks, isShort), null, 2)
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
    // TLS verifies client certificates with the CA of the network, and refuses none.
    const ca = this.#deps.identity().caPem
    return { cert: server.certificatePem, key: server.privateKeyPem, ca }
  }
}

/**
 * Whether the peer proved with a certificate of `flotilla pki issue` that it is a monitoring
 * system. Routers, identities and controllers also have certificates of this authority, but are not
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
