import { createServer, type Server } from 'node:https'

import { limitConnections } from '../../lib/bounds/connections.ts'
import { formatHostPort } from '../../lib/text/names.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import { certificateByName } from '../../overlay/sockets/listener-certificates.ts'
import { readServerIdentity, type RouterIdentity } from '../identity/identity.ts'
import { healthCheckLimits as limits } from './limits.ts'
import { ProgramFailure } from '../../overlay/failure.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import { healthAnswer, type HealthCheck } from './checks.ts'
import { closeServer, listeningPort } from '../../lib/runtime/listening.ts'
import { bindServer } from '../../overlay/sockets/bind-server.ts'

type WebConfig = RouterConfig['web'][number]

interface HealthServersDeps {
  readonly web: readonly WebConfig[]
  readonly identity: () => RouterIdentity
  readonly handshakeTimeoutMs: number
  readonly checks: readonly HealthCheck[]
  readonly log: ProgramLogger
}

const TLS_VERSIONS = { 'TLS1.2': 'TLSv1.2', 'TLS1.3': 'TLSv1.3' } as const

/** The HTTPS servers in `web`. They answer every request with the health-checks API. */
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
    const credentials = (): { cert: string; key: string } => this.#credentials(web, place)
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
      const isShort = URL.parse(request.url ?? '/', 'https://router')?.searchParams.get('type')
      const text = JSON.stringify(healthAnswer(this.#deps.checks, isShort === 'short'), null, 2)
      const moved = point.newAddress
      const late = setTimeout(() => response.destroy(), options.writeTimeout)
      response.once('finish', () => clearTimeout(late))
      response.once('close', () => clearTimeout(late))
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
        'cache-control': 'no-store',
        ...(moved === null ? {} : { 'ziti-ctrl-address': formatHostPort(moved) }),
      })
      response.end(request.method === 'HEAD' ? undefined : text)
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
        const { cert, key } = credentials()
        server.setSecureContext({ cert, key })
      },
    })
    log.info({ name: web.name, address: formatHostPort(point.interface) }, 'serving health checks')
  }

  #credentials(web: WebConfig, place: string): { cert: string; key: string } {
    const own = web.identity
    const server =
      own === null ? this.#deps.identity().server : readServerIdentity(own, `${place}.identity`)
    if (server === null) {
      throw new ProgramFailure(
        `${place}: needs a server certificate; name one with identity.server_cert`,
      )
    }
    return { cert: server.certificatePem, key: server.privateKeyPem }
  }
}
