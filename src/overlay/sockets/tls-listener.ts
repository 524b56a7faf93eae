import { createServer, type Server } from 'node:tls'

import type { Channel } from '../../channel/channel.ts'
import { ProgramFailure } from '../failure.ts'
import type { ProgramLogger } from '../logger.ts'
import type { bindServer } from './bind-server.ts'
import { createSniCallback, type ListenerCertificates } from './listener-certificates.ts'
import type { ListeningTlsServer, PortProtocols } from './shared-tls-port.ts'
import type { TlsPortOpener } from './tls-port-opener.ts'

interface TlsListenerDeps {
  readonly ports: TlsPortOpener
  readonly identity: () => ListenerCertificates & {
    /** CA certificates against which client certificates are verified. */
    readonly caPem: string
  }
  /** Application protocol (ALPN) of the channels. */
  readonly protocol: string
  /** Which clients without an application protocol (ALPN) this server receives on a shared port. */
  readonly clientsWithout: PortProtocols['clientsWithout']
  /** Whether the handshake rejects a client without a certificate of the CA. */
  readonly rejectUnauthorized: boolean
  readonly handshakeTimeoutMs: number
  /** Beginning of the error message for a missing server certificate: `${use} needs …`. */
  readonly use: string
  readonly log: ProgramLogger
}

/** Certificate, key and CA certificates of a TLS server, in PEM. */
interface TlsCredentials {
  readonly cert: string
  readonly key: string
  readonly ca: string
}

/**
 * A TLS server whose connections carry channels. It requests a client certificate. Its owner must
 * limit and accept the connections, and keep each channel in `channels` while the channel is open.
 */
export class TlsListener {
  readonly server: Server
  /** Open channels, which `close` closes. */
  readonly channels = new Set<Channel>()
  readonly #deps: TlsListenerDeps
  #port: ListeningTlsServer | null = null

  /** @throws {ProgramFailure} without a server certificate. */
  constructor(deps: TlsListenerDeps) {
    this.#deps = deps
    this.server = createServer({
      ...this.credentials(),
      SNICallback: createSniCallback(deps.identity),
      requestCert: true,
      rejectUnauthorized: deps.rejectUnauthorized,
      minVersion: 'TLSv1.2',
      ALPNProtocols: [deps.protocol],
      handshakeTimeout: deps.handshakeTimeoutMs,
    })
    // Closes only this socket: a failed handshake must not affect other clients.
    this.server.on('tlsClientError', (_error, socket) => socket.destroy())
  }

  /**
   * The port on which the server listens; if 0 was configured, the port that the system chose; 0
   * before it listens.
   */
  get port(): number {
    return this.#port?.port ?? 0
  }

  /**
   * @param place path of the listener in the configuration.
   * @param outer a server that accepts the connections instead of `server`, with the application
   * protocol of that server.
   * @throws {ProgramFailure} when the server cannot listen.
   */
  async listen(
    bind: Parameters<typeof bindServer>[1],
    place: string,
    outer: { readonly server: Server; readonly protocol: string } = {
      server: this.server,
      protocol: this.#deps.protocol,
    },
  ): Promise<void> {
    const { ports, log, clientsWithout } = this.#deps
    this.#port = await ports.open(outer.server, bind, `${place}.bind`, {
      protocols: [outer.protocol],
      clientsWithout,
    })
    outer.server.on('error', (error) => log.warn({ err: error, place }, 'listener failed'))
  }

  /** Makes new connections use the current certificate. */
  renew(): void {
    this.server.setSecureContext(this.credentials())
  }

  /** Stops accepting connections, and closes the open channels. */
  async close(): Promise<void> {
    const closed = this.#port?.close()
    for (const channel of Array.from(this.channels)) channel.close('the router stops')
    await closed
  }

  /** @throws {ProgramFailure} if no server certificate is configured. */
  credentials(): TlsCredentials {
    const { server, caPem } = this.#deps.identity()
    if (server === null) {
      throw new ProgramFailure(
        `${this.#deps.use} needs a server certificate; name one with identity.server_cert`,
      )
    }
    return { cert: server.certificatePem, key: server.privateKeyPem, ca: caPem }
  }
}
