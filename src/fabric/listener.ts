import { createServer, type Server, type TlsOptions, type TLSSocket } from 'node:tls'

import type { Clock } from '../lib/clock.ts'
import { CONTROL_PROTOCOL } from '../channel/messages/control.ts'
import { limitConnections } from '../lib/bounds/connections.ts'
import type { FairShare } from '../lib/bounds/fair-share.ts'
import { KeyedRate } from '../lib/bounds/keyed-rate.ts'
import { routerLimits } from './limits.ts'
import type { RouterChannels } from './router-channels.ts'
import { peerLeafSha256 } from '../lib/runtime/peer-certificates.ts'

type RouterListenerLimits = Record<
  Extract<keyof typeof routerLimits, `routerConnect${string}` | `routerHandshake${string}`>,
  number
>

interface RouterListenerDeps {
  readonly channels: RouterChannels
  /** TLS versions, cipher suites and client certificate request, as for every listener. */
  readonly tls: TlsOptions
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** The limit of open sockets, which this listener shares with others. */
  readonly room: FairShare
  /**
   * False until the state of a joined controller has arrived. Connections are closed meanwhile, and
   * the router dials again: a refusal would mean that the controller does not know the router.
   */
  readonly isReady?: () => boolean
  readonly limits?: Partial<RouterListenerLimits>
}

export interface CertificateAndKey {
  readonly certificatePem: string
  readonly privateKeyPem: string
}

interface ListeningPort {
  readonly port: number
  /** Stops accepting, and resolves when the last connection has closed. */
  readonly close: () => Promise<void>
}

/** The listener for routers. */
export class RouterListener {
  readonly #server: Server
  readonly #deps: RouterListenerDeps
  /** Connection rates by certificate, because each router has its own. */
  readonly #connects: KeyedRate
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
    this.#connects = new KeyedRate(
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
      rate: new KeyedRate(
        {
          burst: limits.routerConnectionsPerSourceBurst,
          perSecond: limits.routerConnectionsPerSourcePerSecond,
          keysMax,
        },
        deps.clock,
      ),
    })
    this.#server.on('secureConnection', (socket) => {
      // With another protocol, the handshake has failed; a dialer that requests no protocol gets
      // here.
      const isReady = deps.isReady?.() !== false
      const isOfRouter = socket.alpnProtocol === CONTROL_PROTOCOL
      // @guard router-that-comes-and-goes
      if (isReady && isOfRouter && this.#mayConnect(socket)) {
        deps.channels.accept(socket)
      } else {
        socket.destroy()
      }
    })
    // A failed handshake affects only its dialer.
    this.#server.on('tlsClientError', (_error, socket) => socket.destroy())
  }

  /**
   * @param listen makes the server listen, or another server accept its connections.
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
   * A channel costs more than its handshake, because records, peers and clients are sent over it.
   */
  #mayConnect(socket: TLSSocket): boolean {
    return this.#connects.take(peerLeafSha256(socket))
  }

  /** The bound port, also if it was configured as 0. */
  get port(): number {
    return this.#ports[0]?.port ?? 0
  }

  /** New connections get this certificate; existing ones are not affected. */
  renew({ certificatePem, privateKeyPem }: CertificateAndKey): void {
    this.#server.setSecureContext({ ...this.#deps.tls, cert: certificatePem, key: privateKeyPem })
  }

  /** Closes every channel; the routers connect to another controller. */
  async close(): Promise<void> {
    const closed = Promise.all(this.#ports.map((port) => port.close()))
    this.#deps.channels.stop()
    await closed
  }
}
