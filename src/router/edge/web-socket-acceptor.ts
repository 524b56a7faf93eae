import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { Duplex } from 'node:stream'
import type { Server as TlsServer, TLSSocket } from 'node:tls'

import type { WebSocketTimeouts } from '../../config/router/table-transport.ts'
import {
  type ConnectionBounds,
  socketEndpoint,
  limitConnections,
  PendingConnections,
} from '../../lib/bounds/connections.ts'
import { sourceNetwork } from '../../lib/bounds/source-network.ts'
import type { Clock } from '../../lib/clock.ts'
import { STATUS_CODES } from '../../lib/runtime/node-http.ts'
import {
  type WebSocket,
  type WebSocketServer,
  createWebSocketServer,
} from '../../lib/runtime/web-sockets.ts'
import { createSniCallback } from '../../overlay/sockets/listener-certificates.ts'
import {
  type ClientSocketAddresses,
  clientSocketAddresses,
} from '../../overlay/sockets/stream-listener.ts'
import type { RouterIdentity } from '../identity/reloadable-identity.ts'
import { edgeLimits } from './limits.ts'
import { WebSocketStream } from './web-socket-stream.ts'

/** Application protocol (ALPN) of the request that opens a web socket. */
export const WEB_SOCKET_PROTOCOL = 'http/1.1'

export interface WebSocketAcceptorDeps {
  readonly identity: () => RouterIdentity
  readonly credentials: () => { readonly cert: string; readonly key: string }
  readonly clock: Clock
  readonly bounds: ConnectionBounds
  readonly timeouts: WebSocketTimeouts
  /** Server of the TLS connection within each web socket. It does not listen itself. */
  readonly inner: TlsServer
  /**
   * Called when the TLS connection within a web socket is established.
   * @param onAdmitted to be called when the client is admitted; the limit for its data then ends.
   */
  readonly onSecure: (
    socket: TLSSocket,
    ends: ClientSocketAddresses,
    onAdmitted: () => void,
  ) => void
}

/** Path at which clients of OpenZiti open web sockets. */
const PATH = '/ws'

/**
 * A listener for clients that run in a browser: HTTPS, a web socket, and inside it the TLS
 * connection of the client's channel. The outer TLS connection presents the server certificate and
 * requests no client certificate. In the inner TLS connection, the client presents its certificate,
 * which the browser does not do for a page. As in OpenZiti, the origin of a request is not checked:
 * a browser adds nothing that authorizes the request, and pages of any origin may use the network
 * with their own certificate.
 */
export class WebSocketAcceptor {
  readonly server: Server
  readonly #deps: WebSocketAcceptorDeps
  readonly #upgrades: WebSocketServer
  /** Connections between the outer and the inner TLS handshake. */
  readonly #waiting: PendingConnections

  constructor(deps: WebSocketAcceptorDeps) {
    this.#deps = deps
    const { identity, credentials, bounds, timeouts } = deps
    this.#upgrades = createWebSocketServer({
      // @guard web-sockets-of-clients--size
      messageBytesMax: edgeLimits.webSocketMessageBytesMax,
      fragmentsMax: edgeLimits.webSocketFragmentsMax,
      closeMs: edgeLimits.webSocketCloseMs,
    })
    this.#waiting = new PendingConnections({
      // @guard web-sockets-of-clients--time
      handshakeTimeoutMs: timeouts.handshakeTimeout,
      handshakesMax: edgeLimits.clientsWaitingMax,
      // @guard web-sockets-of-clients--source
      handshakesPerSourceMax: edgeLimits.clientsWaitingPerSourceMax,
    })
    this.server = createServer({
      ...credentials(),
      SNICallback: createSniCallback(identity),
      minVersion: 'TLSv1.2',
      ALPNProtocols: [WEB_SOCKET_PROTOCOL],
      maxHeaderSize: edgeLimits.upgradeHeaderBytesMax,
      headersTimeout: timeouts.readTimeout,
      requestTimeout: timeouts.readTimeout,
      connectionsCheckingInterval: edgeLimits.upgradeCheckEveryMs,
    })
    this.server.on('request', refuse)
    this.server.on('upgrade', (request, socket, head) => {
      this.#upgrade(request, socket as TLSSocket, head)
    })
    this.server.on('tlsClientError', (_error, socket) => socket.destroy())
    limitConnections(this.server, bounds)
    this.server.on('secureConnection', (socket) => this.#await(socket))
  }

  /** New connections get the current certificate. */
  renew(): void {
    this.server.setSecureContext(this.#deps.credentials())
  }

  /** Closes connections in which no channel has begun. */
  closeWaiting(): void {
    this.#waiting.closeAll()
  }

  #await(socket: TLSSocket): void {
    socket.setKeepAlive(true, edgeLimits.clientKeepAliveMs)
    const endpoint = socketEndpoint(socket)
    this.#waiting.begin(endpoint, sourceNetwork(socket.remoteAddress ?? ''), socket)
    socket.once('close', () => this.#waiting.end(endpoint))
  }

  #upgrade(request: IncomingMessage, socket: TLSSocket, head: Buffer): void {
    // Errors are ignored, because the client may disconnect at any time.
    socket.on('error', () => undefined)
    if (pathOf(request) !== PATH) refuseUpgrade(socket)
    else this.#upgrades.handleUpgrade(request, socket, head, (web) => this.#secure(web, socket))
  }

  #secure(web: WebSocket, connection: TLSSocket): void {
    const { clock, inner, timeouts, onSecure } = this.#deps
    const endpoint = socketEndpoint(connection)
    const ends = clientSocketAddresses(connection)
    const stream = new WebSocketStream({
      web,
      connection,
      clock,
      pingEveryMs: timeouts.pingInterval,
      pongMsMax: timeouts.pongTimeout,
    })
    stream.on('error', () => undefined)
    const unlimit = limitBytes(connection, edgeLimits.webSocketAdmissionBytesMax)
    acceptTls(inner, stream, (socket) => {
      this.#waiting.end(endpoint)
      writeSeparately(socket)
      onSecure(socket, ends, unlimit)
    })
  }
}

/**
 * Accepts a TLS connection over a stream, with the options of a server. The event of the server
 * does not say on which stream a TLS socket runs. So each stream gets a separate view of the
 * server, which reports only the socket of this stream.
 */
function acceptTls(server: TlsServer, stream: Duplex, onSecure: (socket: TLSSocket) => void): void {
  const view = Object.create(server, {
    emit: {
      value: (event: string, ...values: readonly unknown[]): boolean => {
        if (event !== 'secureConnection') return server.emit(event, ...values)
        onSecure(values[0] as TLSSocket)
        return true
      },
    },
  }) as TlsServer
  for (const listener of server.listeners('connection')) listener.call(view, stream)
}

/**
 * Ends the TLS record with each write. Otherwise a socket that has several writes waiting combines
 * them, and BrowZer loses the second of two messages in one record.
 */
function writeSeparately(socket: TLSSocket): void {
  Object.defineProperty(socket, '_writev', { value: null })
}

/**
 * Closes a connection that receives more than `bytesMax`. The parts of a message stay in memory
 * until its end arrives, so its size must be limited before the client is authenticated.
 * @returns a function that removes the limit.
 */
function limitBytes(connection: Duplex, bytesMax: number): () => void {
  let bytes = 0
  const count = (chunk: Uint8Array): void => {
    bytes += chunk.length
    // @guard web-sockets-of-clients--admission
    if (bytes > bytesMax) connection.destroy()
  }
  connection.on('data', count)
  return () => {
    connection.off('data', count)
  }
}

function pathOf({ url = '' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? ''
}

/** Rejects a request that does not open a web socket, and closes its connection. */
function refuse(request: IncomingMessage, response: ServerResponse): void {
  const status = pathOf(request) !== PATH ? 404 : request.method === 'GET' ? 426 : 405
  const text = `${STATUS_CODES[status] ?? ''}\n`
  response.writeHead(status, {
    connection: 'close',
    'content-type': 'text/plain',
    'content-length': text.length,
    ...(status === 426 ? { upgrade: 'websocket' } : {}),
    ...(status === 405 ? { allow: 'GET' } : {}),
  })
  response.end(text)
}

function refuseUpgrade(socket: TLSSocket): void {
  socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
  socket.resume()
}
