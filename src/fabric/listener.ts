import { createServer, type Server, type TlsOptions, type TLSSocket } from 'node:tls'

import type { Clock } from '../lib/clock.ts'
import { limitConnections } from '../lib/bounds/connections.ts'
import type { FairShare } from '../lib/bounds/fair-share.ts'
import { KeyedRate } from '../lib/bounds/keyed-rate.ts'
import { routerLimits } from './limits.ts'
import type { RouterChannels } from './router-channels.ts'
import { closeServer, listenAt, portOf } from '../lib/runtime/listening.ts'
import { peerLeafSha256 } from '../lib/runtime/peer-certificates.ts'

/**
 * Protocol that a dialer asks for in the TLS handshake that speaks the control channel of routers.
 */
const CONTROL_PROTOCOL = 'ziti-ctrl'

type RouterListenerLimits = Record<
  Extract<keyof typeof routerLimits, `routerConnect${string}` | `routerHandshake${string}`>,
  number
>

export interface RouterListenerDeps {
  readonly channels: RouterChannels
  /** Versions, suites and the request for a certificate, as of every listener of the controller. */
  readonly tls: TlsOptions
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** The sockets that this listener shares with others. */
  readonly room: FairShare
  readonly limits?: Partial<RouterListenerLimits>
}

export interface CertificateAndKey {
  readonly certificatePem: string
  readonly privateKeyPem: string
}

/** The listener that routers connect to. */
export class RouterListener {
  readonly #server: Server
  readonly #deps: RouterListenerDeps
  /** Rates of connections by certificate: a router has one. */
  readonly #connects: KeyedRate

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
    this.#server.maxConnections = limits.routerConnectionsMax
    limitConnections(this.#server, {
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
      // A dialer that asks for another protocol has failed in the handshake; one that asks for none
      // gets here.
      // @guard router-that-comes-and-goes
      if (socket.alpnProtocol === CONTROL_PROTOCOL && this.#mayConnect(socket)) {
        deps.channels.accept(socket)
      } else {
        socket.destroy()
      }
    })
    // Whatever fails in a handshake fails for its dialer alone.
    this.#server.on('tlsClientError', (_error, socket) => socket.destroy())
  }

  /** @throws the error of the system when it cannot listen. */
  static async open(
    deps: RouterListenerDeps,
    credentials: CertificateAndKey,
    address: { readonly host: string; readonly port: number },
  ): Promise<RouterListener> {
    const listener = new RouterListener(deps, credentials)
    await listenAt(listener.#server, { port: address.port, host: address.host })
    listener.#server.on('error', () => undefined)
    deps.channels.start()
    return listener
  }

  /** Each channel costs more than its handshake: records, peers and clients are told of it. */
  #mayConnect(socket: TLSSocket): boolean {
    return this.#connects.take(peerLeafSha256(socket))
  }

  /** Port where it listens, for one that was opened on any free port. */
  get port(): number {
    return portOf(this.#server)
  }

  /** New connections get this certificate; standing ones go on as they are. */
  renew({ certificatePem, privateKeyPem }: CertificateAndKey): void {
    this.#server.setSecureContext({ ...this.#deps.tls, cert: certificatePem, key: privateKeyPem })
  }

  /** Closes every channel; routers go on to another controller. */
  async close(): Promise<void> {
    const closed = closeServer(this.#server)
    this.#deps.channels.stop()
    await closed
  }
}
