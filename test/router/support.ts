import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hash } from 'node:crypto'
import { createServer, type Server } from 'node:tls'

import { expect } from 'vitest'

import { Channel } from '../../src/channel/channel.ts'
import type { ChannelMessage, OutboundMessage } from '../../src/channel/frame.ts'
import { type Hello, readHello } from '../../src/channel/hello.ts'
import { channelLimits } from '../../src/channel/limits.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { CachedResolver } from '../../src/lib/runtime/cached-resolver.ts'
import { seededRandom } from '../../src/lib/random.ts'
import {
  type CertificateWithKey,
  issueLeaf,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { controllerSpiffeId } from '../../src/pki/spiffe.ts'
import { parseRouterConfig } from '../../src/config/router/load.ts'
import type { SendRenewal } from '../../src/router/identity/certificate-renewer.ts'
import { RouterProgram } from '../../src/router/router.ts'
import { helloResponse } from '../../src/fabric/hello-response.ts'
import { addressesMessage } from '../../src/channel/messages/control.ts'
import { newCa } from '../support/authorities.ts'

/** Like `expect.poll`, with a timeout that suits a busy machine. */
export function eventually<T>(look: () => T): ReturnType<typeof expect.poll<T>> {
  return expect.poll(look, { timeout: 20_000 })
}

export const version = { version: 'v2.0.0', revision: 'r', buildDate: 'd', os: 'o', arch: 'a' }
export const trustDomain = 'test.example'

/** A controller whose answers the test gives; its TLS and its channels are real. */
export class ScriptedController {
  readonly id: string
  /** Fingerprint of the controller's public key. */
  readonly keySha256: Uint8Array
  readonly received: ChannelMessage[] = []
  readonly hellos: Hello[] = []
  /** Fingerprint of the router certificate of each socket. */
  readonly routerFingerprints: string[] = []
  /** Addresses of the controller's client API, as the controller lists them. */
  clientApis: readonly string[] = []
  /** Whether the controller confirms router certificates on request. */
  verifies = true
  /** Remote addresses of the controller's sockets. */
  readonly remoteAddresses: string[] = []
  /** The number of sockets that were opened to the controller, including closed ones. */
  sockets = 0
  answersPings = true
  answersInterfaces = true
  readonly #arrivals: { readonly contentType: number; readonly atMs: number }[] = []
  /** Called with each message as it arrives. */
  onReceived: (message: ChannelMessage) => void = () => undefined
  /** The test's handlers, by message type. */
  readonly handlers = new Map<number, (message: ChannelMessage, channel: Channel) => void>()
  channel: Channel | null = null
  readonly #server: Server
  readonly #channels = new Set<Channel>()

  private constructor(id: string, claimedId: string, key: CertificateWithKey) {
    this.id = id
    this.keySha256 = parseCertificates(key.certificatePem)[0].publicKeySha256
    this.#server = createServer({
      cert: key.certificatePem,
      key: key.privateKeyPem,
      requestCert: true,
      rejectUnauthorized: false,
      ALPNProtocols: ['ziti-ctrl'],
    })
    this.#server.on('tlsClientError', () => undefined)
    this.#server.on('connection', () => (this.sockets += 1))
    this.#server.on('secureConnection', (socket) => {
      this.remoteAddresses.push(socket.remoteAddress ?? '')
      this.routerFingerprints.push(hash('sha1', socket.getPeerX509Certificate()?.raw ?? ''))
      const channel: Channel = new Channel({
        socket,
        limits: channelLimits,
        clock: systemClock,
        onFrame: (direction, { contentType }) => {
          if (direction === 'in')
            this.#arrivals.push({ contentType, atMs: systemClock.monotonicMs() })
        },
        onHello: (message) => {
          const hello = readHello(message)
          if (hello === null) throw new Error('no hello')
          this.hellos.push(hello)
          this.channel = channel
          channel.open(helloResponse(hello, { id: claimedId, clusterId: 'c', version }))
        },
        onMessage: (message) => {
          this.received.push(message)
          this.onReceived(message)
          this.handlers.get(message.contentType)?.(message, channel)
          const isAnswered =
            (message.contentType === 1052 && this.answersInterfaces) ||
            (message.contentType === 1 && this.answersPings)
          if (isAnswered) channel.replyResult(message, true)
          if (message.contentType === 1036) channel.replyResult(message, this.verifies)
          return null
        },
        onClose: () => this.#channels.delete(channel),
      })
      this.#channels.add(channel)
    })
  }

  static async open(
    id: string,
    key: CertificateWithKey,
    options: { readonly claimedId?: string; readonly port?: number } = {},
  ): Promise<ScriptedController> {
    const controller = new ScriptedController(id, options.claimedId ?? id, key)
    await new Promise<void>((done) =>
      controller.#server.listen(options.port ?? 0, '127.0.0.1', done),
    )
    return controller
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  get address(): string {
    return `tls:127.0.0.1:${this.port}`
  }

  get isConnected(): boolean {
    return this.channel !== null && !this.channel.isClosed
  }

  get openChannels(): number {
    return this.#channels.size
  }

  /** Monotonic times in ms at which messages of a type arrived, including heartbeats. */
  timesOf(contentType: number): number[] {
    return this.#arrivals.filter((one) => one.contentType === contentType).map(({ atMs }) => atMs)
  }

  ofType(contentType: number): ChannelMessage[] {
    return this.received.filter((message) => message.contentType === contentType)
  }

  send(outgoing: OutboundMessage): void {
    this.channel?.send(outgoing)
  }

  /** Sends the router the list of members and of removed controllers. */
  tell(
    members: readonly ScriptedController[],
    index: number,
    isLeader: boolean,
    gone: readonly ScriptedController[] = [],
  ): void {
    const controllers = members.map(({ id, address, clientApis, keySha256 }) => ({
      id,
      addresses: [address],
      clientApis,
      publicKeySha256: keySha256,
    }))
    const removed = gone.map(({ id, keySha256 }) => ({ id, publicKeySha256: keySha256 }))
    this.send(
      addressesMessage({ controllers, removed, index, configurationIndex: index, isLeader }),
    )
  }

  async close(): Promise<void> {
    for (const channel of this.#channels) channel.close('the controller stops')
    await new Promise<void>((done) => this.#server.close(() => done()))
  }
}

export interface LoggedLine {
  readonly level: 'info' | 'warn' | 'error'
  readonly fields: Readonly<Record<string, unknown>>
  readonly message: string
}

/** An authority with controllers and one router, in a separate folder. */
export class TestNetwork {
  readonly folder: string
  readonly root: CertificateWithKey
  readonly routerId: string
  readonly lines: LoggedLine[] = []
  readonly #controllers: ScriptedController[] = []
  readonly #routers: RouterProgram[] = []

  private constructor(root: CertificateWithKey, routerId: string) {
    this.root = root
    this.routerId = routerId
    this.folder = mkdtempSync(join(tmpdir(), 'flotilla-router-'))
  }

  /** @param like another network: the new one has the same authority, but another router. */
  static async create(like?: TestNetwork, routerId = 'router1'): Promise<TestNetwork> {
    const root = like?.root ?? (await newCa('network root', Date.now()))
    const network = new TestNetwork(root, routerId)
    const { certificatePem, privateKeyPem } = await network.leaf(routerId, [], [])
    const server = await network.leaf(routerId, [], ['127.0.0.1'])
    for (const [name, text] of Object.entries({
      'r.cert': certificatePem,
      'r.key': privateKeyPem,
      'r.server.cert': server.certificatePem,
      'r.server.key': server.privateKeyPem,
      'r.ca': network.root.certificatePem,
    })) {
      writeFileSync(network.path(name), text, { mode: 0o600 })
    }
    return network
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  leaf(
    commonName: string,
    uris: readonly string[],
    hosts: readonly string[],
    lifetimeMs = LEAF_LIFETIME_MS,
  ): Promise<CertificateWithKey> {
    return issueLeaf({
      issuer: this.root,
      commonName,
      uris,
      hosts,
      usages: ['client', 'server'],
      validity: validityStartingAt(Date.now(), lifetimeMs),
    })
  }

  leafBetween(
    commonName: string,
    notBeforeMs: number,
    notAfterMs: number,
  ): Promise<CertificateWithKey> {
    return issueLeaf({
      issuer: this.root,
      commonName,
      uris: [],
      hosts: [],
      usages: ['client', 'server'],
      validity: { notBeforeMs, notAfterMs },
    })
  }

  async controller(
    id: string,
    options: {
      readonly key?: CertificateWithKey
      readonly claimedId?: string
      readonly port?: number
    } = {},
  ): Promise<ScriptedController> {
    const uri = controllerSpiffeId(trustDomain, id)
    const key = options.key ?? (await this.leaf(id, [uri], ['127.0.0.1']))
    const controller = await ScriptedController.open(id, key, options)
    this.#controllers.push(controller)
    return controller
  }

  /**
   * @param endpoints empty: the configuration names no controller.
   * @param more additional lines of the configuration.
   */
  router(
    endpoints: readonly string[],
    more = '',
    options: {
      readonly askExtension?: SendRenewal
      readonly startupTimeout?: string
      readonly hasCsr?: boolean
      /** Additional keys of the configuration section `identity`. */
      readonly identity?: string
      readonly names?: CachedResolver
      /** Additional keys of the configuration section `ctrl`. */
      readonly ctrl?: string
    } = {},
  ): RouterProgram {
    const { askExtension = null, startupTimeout = '0s', ctrl = '', identity = '' } = options
    const text = `v: 3
identity: {cert: r.cert, key: r.key, server_cert: r.server.cert, server_key: r.server.key, ca: r.ca${identity === '' ? '' : `, ${identity}`}}
ctrl: {${endpoints.length === 0 ? '' : `endpoints: ${JSON.stringify(endpoints)}, `}startupTimeout: ${startupTimeout}${ctrl === '' ? '' : `, ${ctrl}`}}
${options.hasCsr === false ? '' : 'csr: {sans: {dns: [r.test]}}'}
${more}`
    const loaded = parseRouterConfig(this.path('router.yml'), text, {})
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
    const at =
      (level: LoggedLine['level']) =>
      (fields: LoggedLine['fields'], message: string): void => {
        this.lines.push({ level, fields, message })
      }
    const router = new RouterProgram({
      config: loaded.config,
      effective: loaded.effective,
      version,
      clock: systemClock,
      random: seededRandom(1),
      log: { info: at('info'), warn: at('warn'), error: at('error') },
      askExtension,
      names: options.names ?? new CachedResolver({ path: null, clock: systemClock }),
    })
    this.#routers.push(router)
    return router
  }

  async running(endpoints: readonly string[], more = '', ctrl = ''): Promise<RouterProgram> {
    const router = this.router(endpoints, more, { ctrl })
    await router.start({ extends: false })
    return router
  }

  get routers(): readonly RouterProgram[] {
    return this.#routers
  }

  remove(name: string): void {
    rmSync(this.path(name))
  }

  logged(message: string): readonly LoggedLine[] {
    return this.lines.filter((line) => line.message.includes(message))
  }

  async closeRouters(): Promise<void> {
    await Promise.all(this.#routers.map((router) => router.stop()))
  }

  async close(): Promise<void> {
    await Promise.all(this.#routers.map((router) => router.stop()))
    await Promise.all(this.#controllers.map((controller) => controller.close()))
    rmSync(this.folder, { recursive: true, force: true })
  }
}
