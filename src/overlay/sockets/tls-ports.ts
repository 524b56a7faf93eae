import { createServer, type Server, type Socket } from 'node:net'
import type { Server as TlsServer } from 'node:tls'

import { socketEndpoint, PendingConnections } from '../../lib/bounds/connections.ts'
import type { FairShare } from '../../lib/bounds/fair-share.ts'
import { sourceNetwork } from '../../lib/bounds/source.ts'
import { closeServer, listeningPort } from '../../lib/runtime/listening.ts'
import { formatHostPort, type HostPort } from '../../lib/text/names.ts'
import type { ProgramLogger } from '../logger.ts'
import { bindServer } from './bind-server.ts'
import { readTlsHello, type ReadTlsHello } from './client-hello.ts'

type BoundAddress = Parameters<typeof bindServer>[1]

interface TlsPortsDeps {
  /** Addresses of all TLS servers. An address that occurs twice is shared. */
  readonly addresses: readonly HostPort[]
  /** Maximum time from the first packet to the end of the TLS handshake. */
  readonly handshakeTimeoutMs: number
  /** Maximum connections of a shared port without a complete hello, in total and per source. */
  readonly hellosWaitingMax: number
  readonly hellosWaitingPerSourceMax: number
  /** Limit of open connections that the shared ports have in common with other listeners. */
  readonly room?: FairShare
  readonly log: Pick<ProgramLogger, 'warn'>
}

/** Selects the connections of a shared port that a TLS server gets. */
export interface PortProtocols {
  /** Application protocols (ALPN) of the server. */
  readonly protocols: readonly string[]
  /** Whether it also gets the clients that offer none: `rest`, only if no other server does. */
  readonly clientsWithout: 'all' | 'rest' | 'none'
}

/** A TLS server that listens. */
export interface OpenPort {
  /** The bound port, also if it was configured as 0. */
  readonly port: number
  /** Stops accepting, and resolves when the connections of the port have closed. */
  readonly close: () => Promise<void>
}

/**
 * Opens the ports of TLS servers. Servers with the same address share one port, on which the
 * application protocol (ALPN) that a client offers selects the server. The server then receives the
 * connection as if it had accepted it, so its certificates and limits apply unchanged.
 */
export class TlsPorts {
  readonly #deps: TlsPortsDeps
  readonly #shared = new Map<string, SharedPort>()

  constructor(deps: TlsPortsDeps) {
    this.#deps = deps
  }

  /**
   * @param key configuration key of the address.
   * @throws {ProgramFailure} when it cannot listen.
   */
  async open(
    server: TlsServer,
    bind: BoundAddress,
    key: string,
    protocols: PortProtocols,
  ): Promise<OpenPort> {
    if (!this.#isShared(bind)) {
      await bindServer(server, bind, key)
      return { port: listeningPort(server), close: () => closeServer(server) }
    }
    const name = formatHostPort(bind)
    const port = this.#shared.get(name) ?? new SharedPort(this.#deps)
    await port.listen(bind, key)
    this.#shared.set(name, port)
    return port.add(server, protocols)
  }

  #isShared(bind: HostPort): boolean {
    const same = this.#deps.addresses.filter(
      ({ host, port }) => host === bind.host && port === bind.port,
    )
    return bind.port !== 0 && same.length > 1
  }
}

interface PortSide extends PortProtocols {
  readonly server: TlsServer
  readonly connections: Set<Socket>
  /** Called when the last connection has closed, once the side accepts no more. */
  onDrained: (() => void) | null
}

class SharedPort {
  readonly #server: Server
  readonly #log: TlsPortsDeps['log']
  readonly #sides = new Set<PortSide>()
  readonly #handshakeTimeoutMs: number
  readonly #room: FairShare | undefined
  /**
   * Connections without a complete hello, whose server is unknown. The limits of a server apply
   * only after the hello, so clients that send none cannot block handshakes of others.
   */
  readonly #unread: PendingConnections
  readonly #unreadSockets = new Set<Socket>()
  /** Timers of handshakes, by remote address and port. */
  readonly #deadlines = new Map<string, NodeJS.Timeout>()

  constructor(deps: TlsPortsDeps) {
    const { handshakeTimeoutMs, log, room } = deps
    this.#log = log
    this.#room = room
    this.#handshakeTimeoutMs = handshakeTimeoutMs
    this.#unread = new PendingConnections({
      handshakeTimeoutMs,
      // @guard one-port-kept-busy--all
      handshakesMax: deps.hellosWaitingMax,
      // @guard one-port-kept-busy--source
      handshakesPerSourceMax: deps.hellosWaitingPerSourceMax,
    })
    this.#server = createServer((socket) => this.#accept(socket))
  }

  async listen(bind: BoundAddress, key: string): Promise<void> {
    if (this.#server.listening) return
    await bindServer(this.#server, bind, key)
    this.#server.on('error', (error) => this.#log.warn({ err: error }, 'shared port failed'))
  }

  add(server: TlsServer, protocols: PortProtocols): OpenPort {
    const side: PortSide = { server, ...protocols, connections: new Set(), onDrained: null }
    this.#sides.add(side)
    // With this event, an HTTP server begins to track its connections and to enforce its timeouts.
    // @guard slow-requests-at-a-shared-port
    server.emit('listening')
    server.on('secureConnection', (socket: Socket) => this.#endDeadline(socketEndpoint(socket)))
    return {
      port: listeningPort(this.#server),
      close: async () => {
        this.#sides.delete(side)
        const { promise, resolve } = Promise.withResolvers<void>()
        side.onDrained = resolve
        if (side.connections.size === 0) resolve()
        if (this.#sides.size === 0) {
          this.#server.close()
          for (const socket of this.#unreadSockets) socket.destroy()
        }
        await promise
      },
    }
  }

  #accept(socket: Socket): void {
    const endpoint = socketEndpoint(socket)
    const source = sourceNetwork(socket.remoteAddress ?? '')
    // @guard one-port-kept-busy--room
    if (this.#room?.hasRoomFor(source) === false) {
      socket.destroy()
      return
    }
    const read = (): void => {
      if (!this.#unreadSockets.delete(socket)) return
      this.#unread.end(endpoint)
      this.#room?.giveBack(source)
    }
    this.#room?.take(source)
    this.#unread.begin(endpoint, source, socket)
    this.#unreadSockets.add(socket)
    // Hello and handshake share one deadline, as on a port of a single server.
    // @guard one-port-kept-busy--time
    this.#deadlines.set(
      endpoint,
      setTimeout(() => socket.destroy(), this.#handshakeTimeoutMs),
    )
    socket.on('error', () => undefined)
    socket.once('close', () => {
      read()
      this.#endDeadline(endpoint)
    })
    readHello(socket, (hello, bytes) => {
      const side = hello === null ? null : this.#sideFor(hello.protocols)
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

  /** The last one of the offered protocols that a server has counts, as in OpenZiti. */
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

type Hello = Extract<ReadTlsHello, { kind: 'hello' }>

/** Calls back once, with the bytes read from the socket; with null for a malformed hello. */
function readHello(socket: Socket, done: (hello: Hello | null, bytes: Buffer) => void): void {
  const chunks: Buffer[] = []
  let length = 0
  let bytesNeeded = 1
  const onReadable = (): void => {
    const chunk = socket.read() as Buffer | null
    if (chunk === null) return
    chunks.push(chunk)
    length += chunk.length
    if (length < bytesNeeded) return
    const bytes = Buffer.concat(chunks)
    const hello = readTlsHello(bytes)
    if (hello.kind === 'incomplete') {
      bytesNeeded = hello.bytesNeeded
      return
    }
    socket.off('readable', onReadable)
    done(hello.kind === 'hello' ? hello : null, bytes)
  }
  socket.on('readable', onReadable)
}
