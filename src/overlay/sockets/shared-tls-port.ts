import { createServer, type Server, type Socket } from 'node:net'
import type { Server as TlsServer, TLSSocket } from 'node:tls'

import { clientAddress } from '../../lib/bounds/client-address.ts'
import { socketEndpoint, PendingConnections } from '../../lib/bounds/connections.ts'
import type { FairShare } from '../../lib/bounds/fair-share.ts'
import { sourceNetwork } from '../../lib/bounds/source-network.ts'
import { listeningPort } from '../../lib/runtime/listening.ts'
import type { ProgramLogger } from '../logger.ts'
import { BalancerHeaderReader } from './balancer-header-reader.ts'
import { bindServer } from './bind-server.ts'
import { readTlsHello } from './client-hello.ts'
import { readUntilDecoded } from './read-until-decoded.ts'

export type BoundAddress = Parameters<typeof bindServer>[1]

/** Determines which connections of a shared port a TLS server receives. */
export interface PortProtocols {
  /** Application protocols (ALPN) of the server. */
  readonly protocols: readonly string[]
  /**
   * Whether the server also receives clients that offer no application protocol (ALPN); `rest`:
   * only if no other server receives them.
   */
  readonly clientsWithout: 'all' | 'rest' | 'none'
}

/** A TLS server that listens on a port. */
export interface ListeningTlsServer {
  /** The port on which the server listens; if 0 was configured, the port that the system chose. */
  readonly port: number
  /** Stops accepting connections, and resolves when those of the server have closed. */
  readonly close: () => Promise<void>
}

export interface SharedTlsPortDeps {
  /** Whether several servers use the port, so that the ClientHello selects one of them. */
  readonly isShared: boolean
  /**
   * Networks of load balancers. If there are any, only they may connect; if empty, all clients may.
   */
  readonly balancers: readonly string[]
  /** Maximum time from accepting a connection to the end of its TLS handshake. */
  readonly handshakeTimeoutMs: number
  /**
   * Maximum connections to a shared port whose ClientHello has not arrived completely, in total and
   * per source.
   */
  readonly hellosWaitingMax: number
  readonly hellosWaitingPerSourceMax: number
  /** Limit of open connections that these ports share with other listeners. */
  readonly room?: FairShare
  readonly log: Pick<ProgramLogger, 'warn'>
}

interface PortSide extends PortProtocols {
  readonly server: TlsServer
  readonly connections: Set<Socket>
  /** Called when the server accepts no more connections and the last one has closed. */
  onDrained: (() => void) | null
}

/**
 * Accepts connections for TLS servers: behind load balancers, reads the header of each connection;
 * if several servers share the port, selects one by the client's ClientHello; then passes the
 * connection to the server.
 */
export class SharedTlsPort {
  readonly #server: Server
  readonly #deps: SharedTlsPortDeps
  #headers: BalancerHeaderReader | null = null
  readonly #sides = new Set<PortSide>()
  /**
   * Connections whose ClientHello has not arrived completely, so that their server is unknown. The
   * limits of a server apply only later, so clients that send nothing cannot prevent the handshakes
   * of others.
   */
  readonly #unread: PendingConnections
  readonly #unreadSockets = new Set<Socket>()
  /** Timers of handshakes, by remote address and port. */
  readonly #deadlines = new Map<string, NodeJS.Timeout>()

  constructor(deps: SharedTlsPortDeps) {
    this.#deps = deps
    this.#unread = new PendingConnections({
      handshakeTimeoutMs: deps.handshakeTimeoutMs,
      // @guard one-port-kept-busy--all
      handshakesMax: deps.hellosWaitingMax,
      // @guard one-port-kept-busy--source
      handshakesPerSourceMax: deps.hellosWaitingPerSourceMax,
    })
    this.#server = createServer((socket) => this.#accept(socket))
  }

  async listen(bind: BoundAddress, key: string): Promise<void> {
    if (this.#server.listening) return
    const { balancers, log } = this.#deps
    if (balancers.length > 0)
      this.#headers = new BalancerHeaderReader({ ...this.#deps, listener: key })
    await bindServer(this.#server, bind, key)
    this.#server.on('error', (error) => log.warn({ err: error }, 'port failed'))
  }

  add(server: TlsServer, protocols: PortProtocols): ListeningTlsServer {
    const side: PortSide = { server, ...protocols, connections: new Set(), onDrained: null }
    this.#sides.add(side)
    // This event makes an HTTP server track the connection and enforce its timeouts.
    // @guard slow-requests-at-a-shared-port
    server.emit('listening')
    server.prependListener('secureConnection', (socket: TLSSocket) => {
      this.#headers?.passAddressOn(socket)
      this.#endDeadline(socketEndpoint(socket))
    })
    return {
      port: listeningPort(this.#server),
      close: async () => {
        this.#sides.delete(side)
        const { promise, resolve } = Promise.withResolvers<void>()
        side.onDrained = resolve
        if (side.connections.size === 0) resolve()
        if (this.#sides.size === 0) {
          this.#server.close()
          this.#headers?.closeAll()
          for (const socket of this.#unreadSockets) socket.destroy()
        }
        await promise
      },
    }
  }

  #accept(socket: Socket): void {
    const endpoint = socketEndpoint(socket)
    // PROXY header, ClientHello and handshake have one common deadline, as on a port with a single
    // server.
    // @guard one-port-kept-busy--time
    this.#deadlines.set(
      endpoint,
      setTimeout(() => socket.destroy(), this.#deps.handshakeTimeoutMs),
    )
    socket.on('error', () => undefined)
    socket.once('close', () => this.#endDeadline(endpoint))
    if (this.#headers === null) this.#select(socket)
    else this.#headers.read(socket, () => this.#select(socket))
  }

  /** Passes the connection to its server; on a shared port, after the ClientHello has arrived. */
  #select(socket: Socket): void {
    if (this.#deps.isShared) {
      this.#readHello(socket)
      return
    }
    const [side] = this.#sides
    if (side === undefined) socket.destroy()
    else this.#hand(socket, side)
  }

  #readHello(socket: Socket): void {
    const { room } = this.#deps
    const endpoint = socketEndpoint(socket)
    const source = sourceNetwork(clientAddress(socket))
    // @guard one-port-kept-busy--room
    if (room?.hasRoomFor(source) === false) {
      socket.destroy()
      return
    }
    const read = (): void => {
      if (!this.#unreadSockets.delete(socket)) return
      this.#unread.end(endpoint)
      room?.giveBack(source)
    }
    room?.take(source)
    this.#unread.begin(endpoint, source, socket)
    this.#unreadSockets.add(socket)
    socket.once('close', read)
    readUntilDecoded(socket, readTlsHello, (hello, bytes) => {
      const side = hello.kind === 'hello' ? this.#sideFor(hello.protocols) : null
      if (side === null) {
        socket.destroy()
        return
      }
      read()
      socket.unshift(bytes)
      this.#hand(socket, side)
    })
  }

  #hand(socket: Socket, side: PortSide): void {
    const { connections, server } = side
    connections.add(socket)
    socket.once('close', () => {
      connections.delete(socket)
      if (connections.size === 0) side.onDrained?.()
    })
    server.emit('connection', socket)
  }

  #endDeadline(endpoint: string): void {
    clearTimeout(this.#deadlines.get(endpoint))
    this.#deadlines.delete(endpoint)
  }

  /**
   * As in OpenZiti, the last of the offered protocols that a server supports selects the server.
   */
  #sideFor(protocols: readonly string[] | null): PortSide | null {
    const sides = [...this.#sides]
    if (protocols === null) return sideWithout(sides, 'all') ?? sideWithout(sides, 'rest') ?? null
    const last = protocols.findLast((protocol) =>
      sides.some((side) => side.protocols.includes(protocol)),
    )
    return sides.find((side) => last !== undefined && side.protocols.includes(last)) ?? null
  }
}

function sideWithout(
  sides: readonly PortSide[],
  kind: PortProtocols['clientsWithout'],
): PortSide | undefined {
  return sides.find(({ clientsWithout }) => clientsWithout === kind)
}
