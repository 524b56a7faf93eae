import { constants } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { createServer, type Server, type TLSSocket } from 'node:tls'

import type { Clock } from '../../lib/clock.ts'
import { limitConnections } from '../../lib/bounds/connections.ts'
import { KeyedTokenBuckets } from '../../lib/bounds/keyed-token-buckets.ts'
import { meshLimits } from './limits.ts'
import { tlsContextOptions, type MeshIdentity } from './mesh-service.ts'
import { startListening, listeningPort } from '../../lib/runtime/listening.ts'

interface MeshListenerDeps {
  readonly clock: Clock
  /** Called for each TLS connection whose certificate the cluster CA issued. */
  readonly onConnection: (socket: TLSSocket) => void
}

/**
 * Accepts connections at the mesh port and handles them until the TLS handshake is complete: limits
 * the number and rate of connections, and requires a certificate of the cluster CA.
 */
export class MeshListener {
  readonly #deps: MeshListenerDeps
  readonly #servers: Server[] = []
  /** All addresses of the port share this limit. */
  readonly #rate: KeyedTokenBuckets
  #identity: MeshIdentity
  #isClosed = false

  constructor(identity: MeshIdentity, deps: MeshListenerDeps) {
    this.#identity = identity
    this.#deps = deps
    this.#rate = new KeyedTokenBuckets(
      {
        burst: meshLimits.meshConnectionsBurst,
        perSecond: meshLimits.meshConnectionsPerSecond,
        keysMax: meshLimits.meshSourcesMax,
      },
      deps.clock,
    )
  }

  /**
   * Listens on every address of the name.
   * @param bind host:port; port 0 selects a free one.
   * @returns the port. Rejects with the system's reason when it cannot listen.
   */
  async listen(bind: string): Promise<number> {
    try {
      const { host, port } = hostAndPort(bind)
      let taken = port
      for (const { address } of await lookup(host, { all: true })) {
        taken = await this.#listenAt(address, taken)
      }
      return taken
    } catch (error) {
      this.close()
      throw new Error(`cannot listen on ${bind} for peers: ${(error as Error).message}`)
    }
  }

  /** Sets the identity for new connections. */
  setIdentity(identity: MeshIdentity): void {
    this.#identity = identity
    for (const server of this.#servers) server.setSecureContext(tlsOptions(identity))
  }

  /** Stops listening. Connections that `onConnection` has received stay open. */
  close(): void {
    this.#isClosed = true
    for (const server of this.#servers) server.close()
  }

  async #listenAt(host: string, port: number): Promise<number> {
    const server = createServer({
      ...tlsOptions(this.#identity),
      ALPNProtocols: ['h2'],
      requestCert: true,
      rejectUnauthorized: true,
    })
    limitConnections(server, {
      connectionsPerSourceMax: meshLimits.meshConnectionsPerSourceMax,
      handshakeTimeoutMs: meshLimits.meshHandshakeTimeoutMs,
      handshakesMax: meshLimits.meshHandshakesMax,
      handshakesPerSourceMax: meshLimits.meshHandshakesPerSourceMax,
      rate: this.#rate,
    })
    server.on('tlsClientError', (_error, socket) => socket.destroy())
    server.on('secureConnection', (socket) => {
      socket.on('error', () => socket.destroy())
      if (this.#isClosed || socket.alpnProtocol !== 'h2') socket.destroy()
      else this.#deps.onConnection(socket)
    })
    await startListening(server, { port, host })
    server.on('error', () => undefined)
    this.#servers.push(server)
    return listeningPort(server)
  }
}

/** Also accepts port 0, which only tests use. */
function hostAndPort(bind: string): { readonly host: string; readonly port: number } {
  const at = bind.lastIndexOf(':')
  return { host: bind.slice(0, at).replace(/^\[(.*)\]$/, '$1'), port: Number(bind.slice(at + 1)) }
}

/**
 * TLS options of the mesh: TLS 1.3 only. Session tickets are disabled, so every connection proves
 * that its peer has the key of the certificate.
 */
function tlsOptions(identity: MeshIdentity) {
  return {
    ...tlsContextOptions(identity),
    minVersion: 'TLSv1.3',
    secureOptions: constants.SSL_OP_NO_TICKET,
  } as const
}
