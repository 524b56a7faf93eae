import type { Server, Socket } from 'node:net'

import type { FairShare } from './fair-share.ts'
import { clientAddress } from './client-address.ts'
import { KeyedCounts } from './keyed-counts.ts'
import type { KeyedTokenBuckets } from './keyed-token-buckets.ts'
import { sourceNetwork } from './source-network.ts'

export interface ConnectionBounds {
  /**
   * Maximum open connections of one source (an IPv4 address, a /64 of IPv6); the server immediately
   * closes further ones.
   */
  readonly connectionsPerSourceMax: number
  /**
   * Maximum open connections; the server immediately closes further ones. A server's
   * `maxConnections` does not count connections that another server accepted for it.
   */
  readonly connectionsMax?: number
  /**
   * Maximum time from accepting the connection to the end of the TLS handshake; null for plain
   * HTTP.
   */
  readonly handshakeTimeoutMs: number | null
  /**
   * Maximum handshakes in progress, in total and per source. If one source reaches its limit, a new
   * handshake of that source closes its oldest one. If the total is reached, a new handshake closes
   * the oldest one of the source with the most handshakes in progress. Honest clients finish their
   * handshake quickly, so slow clients cannot block them.
   */
  readonly handshakesMax?: number
  readonly handshakesPerSourceMax?: number
  /**
   * Maximum rate at which one source may open connections; the server immediately closes further
   * ones.
   */
  readonly rate?: KeyedTokenBuckets
  /** Connection capacity that this listener shares with other listeners. */
  readonly room?: FairShare
}

/** Limits for connections that have not authenticated yet. */
type PendingBounds = Pick<
  ConnectionBounds,
  'handshakeTimeoutMs' | 'handshakesMax' | 'handshakesPerSourceMax'
>

interface Handshake {
  readonly source: string
  readonly socket: Socket
  readonly timer: NodeJS.Timeout
}

/**
 * Limits how many connections the server holds, how many one source (an IPv4 address, a /64 of
 * IPv6) opens and holds, and how long a TLS handshake may take. The deadline counts from the
 * acceptance of the connection: Node's own handshake timeout restarts with each byte, and leaves
 * the connection open when it expires. Call this function after the server has all its other
 * listeners, so that they do not see refused connections.
 */
export function limitConnections(server: Server, bounds: ConnectionBounds): void {
  const sources = new KeyedCounts()
  let open = 0
  const handshakes = new PendingConnections(bounds)
  const admitted = server.listeners('connection') as ((socket: Socket) => void)[]
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    // @guard client-address-of-a-stranger--limits
    const source = sourceNetwork(clientAddress(socket))
    const { room, rate, connectionsMax = Infinity } = bounds
    // @guard connections-of-one-source, no-descriptors-left--room
    const hasRoom =
      sources.of(source) < bounds.connectionsPerSourceMax && room?.hasRoomFor(source) !== false
    // @guard one-port-kept-busy--open
    const isFull = open >= connectionsMax
    // @guard connections-opened-and-dropped
    if (isFull || !hasRoom || rate?.take(source) === false) {
      socket.destroy()
      return
    }
    sources.add(source, 1)
    open += 1
    room?.take(source)
    const endpoint = socketEndpoint(socket)
    handshakes.begin(endpoint, source, socket)
    socket.once('close', () => {
      handshakes.end(endpoint)
      sources.add(source, -1)
      open -= 1
      room?.giveBack(source)
    })
    for (const listener of admitted) listener.call(server, socket)
  })
  server.on('secureConnection', (socket: Socket) => {
    handshakes.end(socketEndpoint(socket))
  })
}

/**
 * Connections that must authenticate before a deadline. If one source has too many, its oldest
 * connection is closed. If there are too many in total, the oldest one of the source with the most
 * is closed.
 */
export class PendingConnections {
  readonly #bounds: PendingBounds
  /**
   * Handshakes by remote address and port, because Node passes one socket object before the
   * handshake and another one after it. The oldest is first.
   */
  readonly #underWay = new Map<string, Handshake>()
  readonly #sources = new KeyedCounts()

  constructor(bounds: PendingBounds) {
    this.#bounds = bounds
  }

  begin(endpoint: string, source: string, socket: Socket): void {
    const { handshakeTimeoutMs, handshakesMax, handshakesPerSourceMax } = this.#bounds
    if (handshakeTimeoutMs === null) return
    // @guard idle-connections-at-the-mesh--source
    if (this.#sources.of(source) >= (handshakesPerSourceMax ?? Infinity)) this.#endOldest(source)
    // @guard idle-connections-at-the-mesh--all
    if (this.#underWay.size >= (handshakesMax ?? Infinity)) this.#endOldest(this.#sources.largest())
    // @guard half-open-handshakes
    const timer = setTimeout(() => socket.destroy(), handshakeTimeoutMs)
    this.#underWay.set(endpoint, { source, socket, timer })
    this.#sources.add(source, 1)
  }

  end(endpoint: string): void {
    const handshake = this.#underWay.get(endpoint)
    if (handshake === undefined) return
    clearTimeout(handshake.timer)
    this.#underWay.delete(endpoint)
    this.#sources.add(handshake.source, -1)
  }

  /** Closes all pending connections when their listener stops. */
  closeAll(): void {
    for (const [endpoint, { socket }] of Array.from(this.#underWay)) {
      this.end(endpoint)
      socket.destroy()
    }
  }

  #endOldest(source: string): void {
    for (const [endpoint, handshake] of this.#underWay) {
      if (handshake.source !== source) continue
      this.end(endpoint)
      handshake.socket.destroy()
      return
    }
  }
}

/**
 * Remote address and port: a key that is equal for the TCP socket and the TLS socket of a
 * connection. Behind a load balancer, the key contains the load balancer's address, because a load
 * balancer may report the same address for two clients.
 */
export function socketEndpoint({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? ''} ${remotePort ?? 0}`
}
