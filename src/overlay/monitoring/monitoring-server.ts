import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server as HttpServer,
} from 'node:http'
import { createServer as createHttpsServer, Server as HttpsServer } from 'node:https'
import type { SecureContextOptions, TlsOptions } from 'node:tls'

import { limitConnections } from '../../lib/bounds/connections.ts'
import { closeServer, listeningPort } from '../../lib/runtime/listening.ts'
import { bindServer } from '../sockets/bind-server.ts'
import type { ProgramLogger } from '../logger.ts'
import { monitoringLimits as limits } from './limits.ts'

export interface MonitoringResponse {
  readonly status: number
  readonly type: string
  readonly text: string
}

export const notFoundResponse: MonitoringResponse = {
  status: 404,
  type: 'text/plain',
  text: 'not found\n',
}

export interface MonitoringServerOptions {
  /** Null for plain HTTP. `renew` calls `credentials` again. */
  readonly tls: {
    readonly options: TlsOptions
    readonly credentials: () => SecureContextOptions
    readonly handshakeTimeoutMs: number
  } | null
  readonly readTimeoutMs: number
  readonly writeTimeoutMs: number
  readonly idleTimeoutMs: number
  /** Headers that every response contains in addition to those of its content. */
  readonly headers: Readonly<Record<string, string>>
  readonly answer: (request: IncomingMessage) => Promise<MonitoringResponse>
  readonly log: ProgramLogger
}

/** A server for health checks and metrics. It ignores the body of requests. */
export class MonitoringServer {
  readonly #options: MonitoringServerOptions
  readonly #server: HttpServer | HttpsServer

  constructor(options: MonitoringServerOptions) {
    this.#options = options
    const { tls, readTimeoutMs, writeTimeoutMs, idleTimeoutMs } = options
    const times = {
      requestTimeout: readTimeoutMs,
      headersTimeout: readTimeoutMs,
      keepAliveTimeout: idleTimeoutMs,
      connectionsCheckingInterval: 1000,
    }
    const server =
      tls === null
        ? createHttpServer(times)
        : createHttpsServer({ ...tls.options, ...tls.credentials(), ...times })
    server.maxConnections = limits.monitoringConnectionsMax
    server.setTimeout(readTimeoutMs + writeTimeoutMs)
    server.on('request', (request, response) => {
      const late = setTimeout(() => response.destroy(), writeTimeoutMs)
      response.once('finish', () => clearTimeout(late))
      response.once('close', () => clearTimeout(late))
      void options.answer(request).then(
        ({ status, type, text }) => {
          response.writeHead(status, {
            'content-type': type,
            'content-length': Buffer.byteLength(text),
            'cache-control': 'no-store',
            ...options.headers,
          })
          response.end(request.method === 'HEAD' ? undefined : text)
        },
        (error: unknown) => {
          options.log.warn({ err: error }, 'a request to the monitoring server failed')
          response.destroy()
        },
      )
      request.resume()
    })
    server.on('tlsClientError', (_error, socket) => socket.destroy())
    limitConnections(server, {
      // @guard health-checks-kept-busy--held
      connectionsPerSourceMax: limits.monitoringConnectionsPerSourceMax,
      // @guard health-checks-kept-busy--time
      handshakeTimeoutMs: tls === null ? null : tls.handshakeTimeoutMs,
      // @guard health-checks-kept-busy--all
      handshakesMax: limits.monitoringHandshakesMax,
      // @guard health-checks-kept-busy--source
      handshakesPerSourceMax: limits.monitoringHandshakesPerSourceMax,
    })
    this.#server = server
  }

  /**
   * @param key key of the address in the configuration.
   * @throws {ProgramFailure} when the server cannot listen.
   */
  async listen(bind: { readonly host: string; readonly port: number }, key: string): Promise<void> {
    await bindServer(this.#server, bind, key)
    this.#server.on('error', (error) => {
      this.#options.log.warn({ err: error }, 'monitoring server failed')
    })
  }

  get port(): number {
    return listeningPort(this.#server)
  }

  /** Makes new connections use the current certificates. */
  renew(): void {
    const { tls } = this.#options
    if (tls !== null && this.#server instanceof HttpsServer) {
      this.#server.setSecureContext(tls.credentials())
    }
  }

  async stop(): Promise<void> {
    const closed = closeServer(this.#server)
    this.#server.closeAllConnections()
    await closed
  }
}
