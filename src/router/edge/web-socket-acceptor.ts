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
  /** Server for the TLS connection within each web socket; it listens on no port. */
  readonly inner: TlsServer
  /**
   * Called when the TLS connection within a web socket is established.
   * @param onAdmitted must be called when the client is admitted; it lifts the limit on received
   * data.
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
 * A listener for clients that connect by web socket, such as clients in a browser: HTTPS, a web
 * socket, and inside it the TLS connection of the client's channel. In the outer TLS connection,
 * the listener requests no client certificate, because a browser presents none for a web page; the
 * client presents its certificate in the inner TLS connection. As in OpenZiti, the origin of a
 * request is not checked: a browser adds nothing that authorizes the request, and a page of any
 * origin may use the network with its own certificate.
 */
export class WebSocketAcceptor {
  readonly server: Server
  readonly #deps: WebSocketAcceptorDeps
  readonly #upgrades: WebSocketServer
  /** Connections whose outer TLS handshake is complete and whose inner one is not. */
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

  /** Makes new connections use the current server certificate. */
  renew(): void {
    this.server.setSecureContext(this.#deps.credentials())
  }

  /** Closes connections that have no channel yet. */
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
    // Without a listener, an error would end the process; a client may disconnect at any time.
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
 * Accepts a TLS connection over a stream, with the options of a server. The server's event does not
 * contain the stream to which a TLS socket belongs. So each stream has a separate view of the
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
 * Makes each write end a TLS record. Otherwise TLS combines writes that wait, and BrowZer loses the
 * second of two messages in one record.
 */
function writeSeparately(socket: TLSSocket): void {
  Object.defineProperty(socket, '_writev', { value: null })
}

/**
 * Closes a connection that receives more than `bytesMax`. A message is in memory until its last
 * part arrives, so its size must be limited before the client is authenticated.
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

/** Refuses an HTTP request that does not open a web socket, and closes its connection. */
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
