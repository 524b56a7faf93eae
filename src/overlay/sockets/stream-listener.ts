import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, Server as TlsServer } from 'node:tls'

import type { Address } from '../../config/router/values.ts'
import { limitConnections } from '../../lib/bounds/connections.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { formatHostPort } from '../../lib/text/names.ts'
import type { LocalCircuits } from '../circuits/circuit-endpoint.ts'
import type { XgressOptions } from '../circuits/xgress-options.ts'
import { createSniCallback, type ListenerCertificates } from './listener-certificates.ts'
import { socketLimits } from './limits.ts'
import { ProgramFailure } from '../failure.ts'
import { SocketApplication } from './socket-application.ts'
import type { CircuitSource, CircuitData } from '../circuits/circuit-source.ts'
import type { RateLimitedWarningLog } from './rate-limited-warning-log.ts'
import { connectionResponseLine, readClientRequest, readRequestLine } from './request-line.ts'
import { resetSocket } from './reset-socket.ts'
import { closeServer, listeningPort } from '../../lib/runtime/listening.ts'
import { bindServer } from './bind-server.ts'

const { streamConnectionsMax, streamConnectionsPerSourceMax, streamHandshakesMax, lingerMs } =
  socketLimits

/** Local and remote address of a TCP connection or of a UDP peer. */
export interface ClientSocketAddresses {
  readonly localAddress: string
  readonly localPort: number
  readonly remoteAddress: string
  readonly remotePort: number
}

/** The service and options that a listener uses for one client. */
export interface ChosenService extends Pick<
  ListenerDeps,
  'service' | 'circuits' | 'circuitTimeoutMs' | 'circuitData'
> {}

export interface ListenerDeps {
  /** Name of the listener in log lines and errors, such as its key in the configuration. */
  readonly place: string
  readonly bind: Address
  /** Service for all connections; null if each client names one. */
  readonly service: string | null
  /**
   * Chooses service and options for a client; null: the client is refused. Absent: all clients use
   * the service and options of this listener.
   */
  readonly choose?: (ends: ClientSocketAddresses) => ChosenService | null
  readonly circuitTimeoutMs: number
  readonly circuits: Pick<LocalCircuits, 'open'>
  readonly flow: XgressOptions
  readonly requests: CircuitSource
  /** Returns data for a new circuit. */
  readonly circuitData?: () => CircuitData
  readonly failures: RateLimitedWarningLog
}

export interface StreamListenerDeps extends ListenerDeps {
  /** Certificates for a `tls:` address; null for other protocols. */
  readonly identity: (() => ListenerCertificates) | null
  readonly handshakeTimeoutMs: number
  /** Whether a listener on an IPv6 address refuses IPv4 connections. */
  readonly ipv6Only?: boolean
}

/**
 * A port on which each connection becomes a circuit: for the bindings `transport` and `proxy`, and
 * for tunnels.
 */
export class StreamListener {
  readonly #deps: StreamListenerDeps
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  /** @throws {ProgramFailure} if a required certificate is missing. */
  constructor(deps: StreamListenerDeps) {
    this.#deps = deps
    const isTls = deps.bind.protocol === 'tls'
    const server = isTls
      ? createTlsServer({
          ...this.#credentials(),
          SNICallback: createSniCallback(() => this.#identity()),
          allowHalfOpen: true,
          minVersion: 'TLSv1.2',
        })
      : createTcpServer({ allowHalfOpen: true, noDelay: true })
    this.#server = server
    server.maxConnections = streamConnectionsMax
    server.on(isTls ? 'secureConnection' : 'connection', (socket: Socket) => {
      void this.#serve(socket)
    })
    server.on('tlsClientError', (_error, socket: Socket) => socket.destroy())
    server.on('drop', () => this.#warn('too many connections', {}))
    limitConnections(server, {
      connectionsPerSourceMax: streamConnectionsPerSourceMax,
      handshakeTimeoutMs: isTls ? deps.handshakeTimeoutMs : null,
      handshakesMax: streamHandshakesMax,
    })
  }

  get port(): number {
    return listeningPort(this.#server)
  }

  /** @throws {ProgramFailure} when it cannot listen. */
  async listen(): Promise<void> {
    const { bind, place, ipv6Only = false } = this.#deps
    await bindServer(this.#server, { ...bind, ipv6Only }, `${place}.bind`)
    this.#server.on('error', (error) => this.#warn('listener failed', { err: error }))
  }

  /** Makes new connections use the current certificate. */
  renew(): void {
    if (this.#server instanceof TlsServer) this.#server.setSecureContext(this.#credentials())
  }

  /** Stops accepting connections; open ones continue until their circuits end. */
  release(): void {
    this.#server.close()
  }

  /** Closes the port and all its connections; their circuits end. */
  async close(): Promise<void> {
    const closed = closeServer(this.#server)
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  #credentials(): { cert: string; key: string } {
    const { server } = this.#identity()
    if (server === null) {
      const { place } = this.#deps
      throw new ProgramFailure(
        `${place}: a tls: address needs a server certificate; name one with identity.server_cert`,
      )
    }
    return { cert: server.certificatePem, key: server.privateKeyPem }
  }

  #identity(): ListenerCertificates {
    const { identity, place } = this.#deps
    if (identity === null) throw new Error(`${place}: a tls: address without an identity`)
    return identity()
  }

  #warn(failure: string, fields: Readonly<Record<string, unknown>>): void {
    this.#deps.failures.warn(this.#deps.place, failure, fields)
  }

  async #serve(socket: Socket): Promise<void> {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    // Ignored, because the client may disconnect before its circuit exists.
    socket.on('error', () => undefined)
    const { choose } = this.#deps
    const chosen = choose === undefined ? this.#deps : choose(clientSocketAddresses(socket))
    if (chosen === null) {
      resetSocket(socket)
      return
    }
    const { service } = chosen
    try {
      if (service === null) await this.#serveRequest(socket)
      else await this.#bridge(socket, { service, client: '' }, chosen)
    } catch (error) {
      this.#warn('no circuit for a client', {
        address: placeOf(socket),
        reason: errorMessage(error),
      })
      if (service === null) {
        socket.end(connectionResponseLine('', errorMessage(error)))
        setTimeout(() => socket.destroy(), lingerMs).unref()
      } else socket.destroy()
    }
  }

  async #serveRequest(socket: Socket): Promise<void> {
    const read = await readRequestLine(socket)
    const request = read === null ? null : readClientRequest(read.line)
    if (read === null || request === null) {
      throw new Error('the first line is no request {"id": …, "svcId": …}')
    }
    await this.#bridge(socket, { ...request, first: read.rest })
  }

  /** @throws {CircuitUnavailableError} */
  async #bridge(
    socket: Socket,
    asked: { readonly service: string; readonly client: string; readonly first?: Uint8Array },
    { service, circuits, circuitTimeoutMs, circuitData }: ChosenService = this.#deps,
  ): Promise<void> {
    const { requests, flow } = this.#deps
    const { service: wanted, client } = asked
    const circuit = await requests.request(wanted, client, circuitTimeoutMs, circuitData?.())
    if (service === null) socket.write(connectionResponseLine(circuit.id, ''))
    const application = new SocketApplication(socket, asked.first)
    application.start(circuits.open({ ...circuit, options: flow }, application))
  }
}

export function clientSocketAddresses({
  localAddress,
  localPort,
  remoteAddress,
  remotePort,
}: Socket): ClientSocketAddresses {
  return {
    localAddress: localAddress ?? '',
    localPort: localPort ?? 0,
    remoteAddress: remoteAddress ?? '',
    remotePort: remotePort ?? 0,
  }
}

function placeOf({ remoteAddress = '', remotePort = 0 }: Socket): string {
  return formatHostPort({ host: remoteAddress, port: remotePort })
}
