import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type Agent, get } from 'node:https'
import { connect as connectTcp, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls'

import type { ApiLimits } from '../../src/api/limits.ts'
import { createApi } from '../../src/api/server.ts'
import { listenerTlsOptions } from '../../src/api/http/transport/tls.ts'
import { encodeText } from '../../src/channel/headers.ts'
import { parseControllerConfig } from '../../src/config/controller/load.ts'
import { HttpsListeners } from '../../src/controller/service/listeners.ts'
import { openTlsPorts } from '../../src/controller/service/ports.ts'
import { CONTROL_PROTOCOL } from '../../src/channel/messages/control.ts'
import { RouterListener } from '../../src/fabric/router-listener.ts'
import { FairShare } from '../../src/lib/bounds/fair-share.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import type { CertificateWithKey } from '../../src/pki/authority/authority.ts'
import { startController, type TestController } from '../api/support/controller.ts'
import { frameOf } from '../channel/pipe.ts'
import { RouterStage } from '../fabric/stage.ts'
import { memberLeaf } from '../support/member-leaf.ts'
import { freePort } from '../support/ports.ts'

interface PortOptions {
  /** Networks of load balancers in front of the port. */
  readonly balancers?: readonly string[]
  /** Whether routers use a separate port. */
  readonly isSeparate?: boolean
}

/** The API of a controller and its router listener at the same address. */
export class SharedPort {
  readonly port: number
  readonly stage = new RouterStage()
  /** Warnings that the port has logged. */
  readonly warnings: string[] = []
  readonly #folder: string
  readonly #controller: TestController
  readonly #sockets = new Set<Socket>()
  #listeners: HttpsListeners | null = null
  #routers: RouterListener | null = null

  private constructor(port: number, controller: TestController) {
    this.port = port
    this.#controller = controller
    this.#folder = mkdtempSync(join(tmpdir(), 'flotilla-shared-port-'))
  }

  /** @param limits limits of the API. */
  static async open(
    limits: Partial<ApiLimits> = {},
    options: PortOptions = {},
  ): Promise<SharedPort> {
    const shared = new SharedPort(await freePort(), await startController(limits))
    await shared.#open(options)
    return shared
  }

  async #open({ balancers = [], isSeparate = false }: PortOptions): Promise<void> {
    const address = `127.0.0.1:${this.port}`
    const routersPort = isSeparate ? await freePort() : this.port
    const from = `proxyProtocol: { from: [${balancers.join(', ')}] }`
    const text = `id: ctrl1
data: data
trustDomain: net.example
identity: { cert: cert.pem, key: key.pem, ca: ca.pem }
cluster: { bind: "127.0.0.1:1480", advertise: "localhost:1480" }
routers: { bind: "127.0.0.1:${routersPort}", ${from} }
web: [{ bind: "${address}", advertise: "localhost:${this.port}", ${from} }]
`
    const loaded = parseControllerConfig(join(this.#folder, 'config.yml'), text, {})
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
    const { config } = loaded
    const own = await memberLeaf('ctrl1')
    const caPem = this.#controller.authorities.anchorsPem()
    const ports = await openTlsPorts(config, {
      warn: (fields, message) => {
        this.warnings.push(`${message} ${JSON.stringify(fields)}`)
      },
    })
    this.#listeners = await HttpsListeners.open({
      api: createApi(this.#controller.parts),
      config,
      credentials: {
        ...own,
        caPem,
        signerCaPem: '',
        chain: parseCertificates(own.certificatePem),
      },
      ports,
    })
    this.#routers = await RouterListener.open(
      {
        channels: this.stage.channels,
        tls: listenerTlsOptions,
        clock: systemClock,
        room: new FairShare(10_000),
      },
      own,
      async (server) => {
        const protocols = { protocols: [CONTROL_PROTOCOL], clientsWithout: 'none' } as const
        const bind = { host: '127.0.0.1', port: routersPort }
        return [await ports.open(server, bind, 'routers.bind', protocols)]
      },
    )
  }

  /** Opens a TCP connection without TLS. */
  plain(localAddress = '127.0.0.1'): Socket {
    return this.#kept(connectTcp({ host: '127.0.0.1', port: this.port, localAddress }))
  }

  /**
   * Opens a TLS connection and completes its handshake.
   * @param options may contain a `socket` to use instead of a new connection.
   */
  async handshake(options: ConnectionOptions): Promise<TLSSocket> {
    const target = { host: '127.0.0.1', port: this.port }
    const socket = connect({ ...target, rejectUnauthorized: false, ...options })
    this.#kept(socket)
    // Node.js 24 crashes if a client destroys its TLS socket and the TCP socket below it at the
    // same time.
    if (options.socket instanceof Socket) this.#sockets.delete(options.socket)
    await new Promise<void>((resolve) => {
      socket.once('secureConnect', resolve)
      socket.once('close', resolve)
    })
    return socket
  }

  /** @returns whether a router with this certificate gets an answer to its hello. */
  async connectsRouter(
    {
      certificatePem: cert,
      privateKeyPem: key,
    }: Pick<CertificateWithKey, 'certificatePem' | 'privateKeyPem'>,
    protocols = [CONTROL_PROTOCOL],
    below: Socket | undefined = undefined,
  ): Promise<boolean> {
    const ALPNProtocols = protocols
    const options = { cert, key, ALPNProtocols, ...(below === undefined ? {} : { socket: below }) }
    const socket = await this.handshake(options)
    const headers = new Map([[4, encodeText('v2.0.3|r|d|linux|amd64')]])
    socket.write(frameOf({ contentType: 0, sequence: -1, headers, body: encodeText('er1') }))
    return await new Promise<boolean>((resolve) => {
      socket.once('data', () => resolve(true))
      if (socket.destroyed) resolve(false)
      socket.once('close', () => resolve(false))
    })
  }

  /** @returns the HTTP status of the response; rejects if there is none. */
  async status(options: { agent?: Agent; ALPNProtocols?: string[] } = {}): Promise<number> {
    const where = { host: '127.0.0.1', port: this.port, path: '/edge/client/v1/version' }
    const asked = get({ ...where, agent: false, rejectUnauthorized: false, ...options })
    const [answer] = (await once(asked, 'response')) as [{ statusCode: number; resume(): void }]
    answer.resume()
    return answer.statusCode
  }

  async closeRouters(): Promise<void> {
    await this.#routers?.close()
    this.#routers = null
  }

  async closeListeners(): Promise<void> {
    await this.#listeners?.close()
    this.#listeners = null
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await this.closeRouters()
    await this.closeListeners()
    await this.#controller.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #kept<T extends Socket>(socket: T): T {
    socket.on('error', () => undefined)
    this.#sockets.add(socket)
    return socket
  }
}
