import { createServer, type Server, type TlsOptions, type TLSSocket } from 'node:tls'

import type { Clock } from '../lib/clock.ts'
import { CONTROL_PROTOCOL } from '../channel/messages/control.ts'
import { limitConnections } from '../lib/bounds/connections.ts'
import type { FairShare } from '../lib/bounds/fair-share.ts'
import { KeyedTokenBuckets } from '../lib/bounds/keyed-token-buckets.ts'
import { routerLimits } from './limits.ts'
import type { RouterChannels } from './router-channels.ts'
import { peerLeafSha256 } from '../lib/runtime/peer-certificates.ts'

type RouterListenerLimits = Record<
  Extract<keyof typeof routerLimits, `routerConnect${string}` | `routerHandshake${string}`>,
  number
>

interface RouterListenerDeps {
  readonly channels: RouterChannels
  /**
   * TLS versions, cipher suites and the request for a client certificate, as for the other
   * listeners.
   */
  readonly tls: TlsOptions
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Limit of open sockets, which several listeners share fairly. */
  readonly room: FairShare
  /**
   * False until a joining controller has received the state of the cluster. Before that, it closes
   * connections without an answer, so that the router dials again: a refusal would mean that the
   * controller does not know the router.
   */
  readonly isReady?: () => boolean
  /**
   * Stores the certificate of a migrated router, or activates the pending certificate of a router,
   * before its channel is accepted; null if there is nothing to do. If the promise rejects, the
   * connection is closed and the router dials again.
   */
  readonly adopt?: (socket: TLSSocket) => Promise<void> | null
  readonly limits?: Partial<RouterListenerLimits>
}

export interface CertificateAndKey {
  readonly certificatePem: string
  readonly privateKeyPem: string
}

interface ListeningPort {
  readonly port: number
  /** Stops accepting connections, and resolves when the last one has closed. */
  readonly close: () => Promise<void>
}

/** The listener for routers. */
export class RouterListener {
  readonly #server: Server
  readonly #deps: RouterListenerDeps
  /** Rates of connections by certificate, because each router has its own certificate. */
  readonly #connects: KeyedTokenBuckets
  /** Sockets of routers whose certificate is being stored or activated. */
  readonly #adopting = new Set<TLSSocket>()
  #ports: readonly ListeningPort[] = []

  private constructor(
    deps: RouterListenerDeps,
    { certificatePem, privateKeyPem }: CertificateAndKey,
  ) {
    this.#deps = deps
    this.#server = createServer({
      ...deps.tls,
      ALPNProtocols: [CONTROL_PROTOCOL],
      cert: certificatePem,
      key: privateKeyPem,
    })
    const limits: RouterListenerLimits = { ...routerLimits, ...deps.limits }
    const { routerRatesMax: keysMax } = routerLimits
    this.#connects = new KeyedTokenBuckets(
      {
        burst: limits.routerConnectsBurst,
        perSecond: limits.routerConnectsPerSecond,
        keysMax,
      },
      deps.clock,
    )
    limitConnections(this.#server, {
      connectionsMax: limits.routerConnectionsMax,
      connectionsPerSourceMax: limits.routerConnectionsPerSourceMax,
      handshakeTimeoutMs: limits.routerHandshakeTimeoutMs,
      room: deps.room,
      rate: new KeyedTokenBuckets(
        {
          burst: limits.routerConnectionsPerSourceBurst,
          perSecond: limits.routerConnectionsPerSourcePerSecond,
          keysMax,
        },
        deps.clock,
      ),
    })
    this.#server.on('secureConnection', (socket) => {
      // A dialer that requests no application protocol (ALPN) can get here; with a wrong one, the
      // handshake has failed.
      const isReady = deps.isReady?.() !== false
      const isOfRouter = socket.alpnProtocol === CONTROL_PROTOCOL
      // @guard router-that-comes-and-goes
      if (isReady && isOfRouter && this.#mayConnect(socket)) {
        this.#accept(socket)
      } else {
        socket.destroy()
      }
    })
    // Closes only this socket: a failed handshake must not affect other dialers.
    this.#server.on('tlsClientError', (_error, socket) => socket.destroy())
  }

  /**
   * @param listen binds the server to a port, or attaches it to another server, which passes
   * connections to it.
   * @throws the error of `listen`.
   */
  static async open(
    deps: RouterListenerDeps,
    credentials: CertificateAndKey,
    listen: (server: Server) => Promise<readonly ListeningPort[]>,
  ): Promise<RouterListener> {
    const listener = new RouterListener(deps, credentials)
    listener.#ports = await listen(listener.#server)
    listener.#server.on('error', () => undefined)
    deps.channels.start()
    return listener
  }

  /**
   * Limits the rate of connections, because a new channel costs more than its handshake: the
   * controller sends records, peers and sessions over it.
   */
  #mayConnect(socket: TLSSocket): boolean {
    return this.#connects.take(peerLeafSha256(socket))
  }

  #accept(socket: TLSSocket): void {
    const { channels, adopt } = this.#deps
    const adopted = adopt?.(socket) ?? null
    if (adopted === null) {
      channels.accept(socket)
      return
    }
    const drop = (): void => void socket.destroy()
    socket.once('error', drop)
    this.#adopting.add(socket)
    void adopted
      .then(() => {
        if (socket.destroyed) return
        socket.removeListener('error', drop)
        channels.accept(socket)
      }, drop)
      .finally(() => this.#adopting.delete(socket))
  }

  /**
   * The port on which the listener listens; if 0 was configured, the port that the system chose.
   */
  get port(): number {
    return this.#ports[0]?.port ?? 0
  }

  /** Makes new connections use this certificate; existing connections are not affected. */
  renew({ certificatePem, privateKeyPem }: CertificateAndKey): void {
    this.#server.setSecureContext({ ...this.#deps.tls, cert: certificatePem, key: privateKeyPem })
  }

  /** Closes all channels. Routers stay connected to the other controllers. */
  async close(): Promise<void> {
    const closed = Promise.all(this.#ports.map((port) => port.close()))
    for (const socket of this.#adopting) socket.destroy()
    this.#deps.channels.stop()
    await closed
  }
}
