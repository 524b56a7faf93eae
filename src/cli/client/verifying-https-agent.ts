import { once } from 'node:events'
import type { ClientRequestArgs } from 'node:http'
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'

import {
  connectThroughProxy,
  type HttpProxy,
  proxyFromEnvironment,
} from '../../lib/runtime/http-proxy.ts'
import type { CachedResolver } from '../../lib/runtime/cached-resolver.ts'
import type { HostPort } from '../../lib/text/names.ts'
import { Agent } from '../../lib/runtime/node-http.ts'
import { peerLeafDer } from '../../lib/runtime/peer-certificates.ts'
import {
  type Certificate,
  controllerCertificateError,
  parseCertificate,
} from '../../pki/certificate.ts'

/** The server of a connection, and how the client verifies it. */
export interface HttpsServerTarget {
  /** Path of a Unix socket to use without TLS. The host in the URL is then ignored. */
  readonly socketPath?: string
  /** PEM of the only trusted CA certificates; null: the CA certificates of this host. */
  readonly caPem?: string | null | undefined
  /**
   * What TLS verifies before `judge` runs. `chain`: `judge` must verify the name in the
   * certificate. `nothing`: `judge` must verify both chain and name. Default: TLS verifies both.
   */
  readonly verified?: 'chain and name' | 'chain' | 'nothing'
  /** Throws to refuse the server, before any byte of a request is sent. */
  readonly judge?: ((leaf: Certificate) => void | Promise<void>) | undefined
  /**
   * HTTP proxy; null or absent: the proxy from HTTPS_PROXY, unless NO_PROXY excludes the server.
   */
  readonly proxy?: HttpProxy | null | undefined
  /**
   * Resolves host names, even while no name server responds; absent: use the system's resolver.
   */
  readonly names?: CachedResolver | undefined
  /** Client certificate and key for the handshake, both PEM. */
  readonly client?: { readonly certificatePem: string; readonly privateKeyPem: string } | undefined
}

/**
 * Connections to controllers. Each TLS server is verified before a request is sent; a Unix socket
 * needs no verification.
 */
export class VerifyingHttpsAgent extends Agent {
  readonly #peer: HttpsServerTarget
  readonly #timeoutMs: number

  /** @param isKept true if a connection is reused for several requests. */
  constructor(peer: HttpsServerTarget, timeoutMs: number, isKept = false) {
    super({ keepAlive: isKept, maxSockets: 8 })
    this.#peer = peer
    this.#timeoutMs = timeoutMs
  }

  override createConnection(
    to: ClientRequestArgs,
    done?: (error: Error | null, socket: Socket) => void,
  ): undefined {
    const fail = done as ((error: Error) => void) | undefined
    this.#open(to).then(
      (socket) => done?.(null, socket),
      (error: unknown) => fail?.(error instanceof Error ? error : new Error(String(error))),
    )
  }

  async #open({ host, port }: ClientRequestArgs): Promise<Socket> {
    const { socketPath } = this.#peer
    const isPlain = socketPath !== undefined
    const socket = isPlain
      ? connectPlain(socketPath)
      : await this.#connectTls({ host: host ?? '', port: Number(port) })
    // Without a listener, a socket error while the server is verified would be an uncaught
    // exception.
    socket.on('error', () => undefined)
    const timer = setTimeout(() => socket.destroy(timeoutError()), this.#timeoutMs)
    try {
      await once(socket, isPlain ? 'connect' : 'secureConnect')
      if (!isPlain) await this.#judge(socket as TLSSocket)
      if (socket.destroyed) throw Object.assign(new Error('closed'), { code: 'ECONNRESET' })
      return socket
    } catch (error) {
      const reason = socket.errored ?? error
      socket.destroy()
      throw reason
    } finally {
      clearTimeout(timer)
    }
  }

  async #connectTls(server: HostPort): Promise<TLSSocket> {
    const proxy = this.#peer.proxy ?? proxyFromEnvironment(process.env, server)
    if (proxy === null) return connectTls(server, this.#peer)
    const options = { timeoutMs: this.#timeoutMs }
    return connectTls(server, this.#peer, await connectThroughProxy(proxy, server, options))
  }

  async #judge(socket: TLSSocket): Promise<void> {
    const shown = peerLeafDer(socket)
    if (shown === null) throw new Error('presented no certificate')
    const leaf = parseCertificate(shown)
    const fault = controllerCertificateError(leaf)
    // @guard router-poses-to-people
    if (fault !== null) throw new Error(fault)
    await this.#peer.judge?.(leaf)
  }
}

function connectTls(
  { host, port }: HostPort,
  { caPem, verified, client, names }: HttpsServerTarget,
  through?: Socket,
): TLSSocket {
  return connect({
    host,
    port,
    ...(names === undefined ? {} : { lookup: names.lookupFor(() => undefined) }),
    ...(through === undefined ? {} : { socket: through }),
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ALPNProtocols: ['http/1.1'],
    minVersion: 'TLSv1.2',
    rejectUnauthorized: verified !== 'nothing',
    ...(typeof caPem === 'string' ? { ca: caPem } : {}),
    ...(verified === 'chain' ? { checkServerIdentity: () => undefined } : {}),
    ...(client === undefined ? {} : { cert: client.certificatePem, key: client.privateKeyPem }),
  })
}

export function timeoutError(): Error {
  return Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })
}
