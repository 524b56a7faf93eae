import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  ApiSessionAddedSchema,
  type CreateTerminatorV2,
  CreateTerminatorV2AnswerSchema,
  CreateTerminatorV2Schema,
  RemoveTerminatorsSchema,
} from '../../proto/gen/router_pb.ts'
import type { ChannelMessage } from '../../src/channel/frame.ts'
import {
  circuitResponseMessage,
  circuitRefusalMessage,
  readCircuitRequest,
} from '../../src/channel/messages/circuit-requests.ts'
import { identityFileText } from '../../src/cli/enroll/identity-file.ts'
import { IdentityCertificateFile } from '../../src/cli/tunnel/identity-certificate-file.ts'
import { buildRouteMessages } from '../../src/fabric/circuits/route.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { startListening, listeningPort } from '../../src/lib/runtime/listening.ts'
import { seededRandom } from '../../src/lib/random.ts'
import type { CertificateWithKey } from '../../src/pki/authority/authority.ts'
import { parseCertificate } from '../../src/pki/certificate.ts'
import { TargetSocketLimiter } from '../../src/overlay/sockets/target-socket-limiter.ts'
import {
  type ApiLogInResult,
  type ControllerApi,
  SessionEndedError,
} from '../../src/tunnel/controller-api.ts'
import { IdentityTunnel } from '../../src/tunnel/identity-tunnel.ts'
import { serviceToken, webSocketStream } from '../router/edge/support.ts'
import {
  eventually,
  type LoggedLine,
  type ScriptedController,
  TestNetwork,
  version,
} from '../router/support.ts'
import { freePort } from '../support/ports.ts'
import { unrouteMessage } from '../../src/channel/messages/circuits.ts'

const origin = 'https://ctrl1.test:1280'

/** A service as the client API shows it to one identity. */
export interface ShownService {
  readonly id: string
  readonly permissions: readonly ('Dial' | 'Bind')[]
  readonly config: Readonly<Record<string, object>>
  readonly encryptionRequired: boolean
}

/** The client API of controllers; the test gives its answers. */
export class PlayedApi implements ControllerApi {
  readonly identityId: string
  readonly asked: string[] = []
  services: readonly ShownService[] = []
  edgeRouters: readonly object[] = []
  followed: readonly string[] = []
  /** Certificates that new connections present, in the order of their use. */
  readonly certificates: string[] = []
  /** Errors that are thrown instead of the next answers. */
  readonly faults: Error[] = []
  readonly #onSession: (token: string) => void
  #changes = 0
  #sessions = 0
  #serviceSessions = 0

  constructor(identityId: string, onSession: (token: string) => void) {
    this.identityId = identityId
    this.#onSession = onSession
  }

  get sessions(): number {
    return this.#sessions
  }

  change(services: readonly ShownService[]): void {
    this.services = services
    this.#changes += 1
  }

  async logIn(): Promise<ApiLogInResult> {
    this.#answer('log-in')
    this.#sessions += 1
    const token = `${this.#sessions}.${this.identityId}.mac`
    this.#onSession(token)
    const identityId = this.identityId
    return await Promise.resolve({ token, identityId, identityName: identityId, lacks: null })
  }

  async get(path: string): Promise<unknown> {
    this.#answer(path)
    return await Promise.resolve(this.#shown(path))
  }

  async post(path: string, body: object): Promise<unknown> {
    this.#answer(path)
    const { serviceId, type } = body as { serviceId: string; type: string }
    this.#serviceSessions += 1
    const token = serviceToken(`${type}/${serviceId}/${this.identityId}/${this.#serviceSessions}`)
    return await Promise.resolve({ token, edgeRouters: this.edgeRouters })
  }

  async logOut(): Promise<void> {
    this.asked.push('log-out')
    await Promise.resolve()
  }

  follow(origins: readonly string[]): void {
    this.followed = origins
  }

  useCertificate(certificatePem: string): void {
    this.certificates.push(certificatePem)
  }

  #answer(path: string): void {
    this.asked.push(path)
    const fault = this.faults.shift()
    if (fault !== undefined) throw fault
  }

  #shown(path: string): unknown {
    if (path === '/current-api-session/service-updates') {
      return { lastChangeAt: `change ${this.#changes}` }
    }
    if (path === '/current-identity') return { id: this.identityId, name: this.identityId }
    if (path.startsWith('/current-identity/edge-routers')) return this.edgeRouters
    if (path === '/controllers') {
      const url = 'https://ctrl2.test:1280/edge/client/v1'
      return [{ apiAddresses: { 'edge-client': [{ url, version: 'v1' }] } }]
    }
    if (!path.startsWith('/services')) throw new Error(`no such path ${path}`)
    return this.services.map((service) => ({ ...service, name: `name of ${service.id}` }))
  }
}

/** A router with a listener for clients, its controller, and tunnels on hosts without a router. */
export class TunnelStage {
  readonly network: TestNetwork
  readonly controller: ScriptedController
  readonly edgePort: number
  readonly #protocol: 'tls' | 'wss'
  /** Relays the connections of tunnels over WebSockets; null: tunnels dial the router directly. */
  #relay: WebSocketRelay | null = null
  /** Terminators by their ID. */
  readonly terminators = new Map<string, CreateTerminatorV2>()
  readonly lines: LoggedLine[] = []
  readonly circuits: string[] = []
  /** If not empty, the controller refuses the next circuit requests with these error codes. */
  readonly refusedCodes: number[] = []
  readonly #results = new Map<string, (message: ChannelMessage) => void>()
  readonly #tunnels: IdentityTunnel[] = []
  /** For each identity, the function that sends its session to the router. */
  readonly #sessions = new Map<string, () => void>()

  private constructor(
    network: TestNetwork,
    controller: ScriptedController,
    edgePort: number,
    protocol: 'tls' | 'wss',
  ) {
    this.network = network
    this.#protocol = protocol
    this.controller = controller
    this.edgePort = edgePort
    controller.onReceived = (message) => this.#onMessage(message)
  }

  /** @param protocol protocol of the router's listener. */
  static async create(protocol: 'tls' | 'wss' = 'tls'): Promise<TunnelStage> {
    const network = await TestNetwork.create()
    const controller = await network.controller('a')
    const port = await freePort()
    const stage = new TunnelStage(network, controller, port, protocol)
    if (protocol === 'wss') stage.#relay = await WebSocketRelay.open(port)
    await network.running([controller.address], stage.#sections)
    await eventually(() => controller.isConnected).toBe(true)
    return stage
  }

  get #sections(): string {
    const address = `bind: "${this.#protocol}:127.0.0.1:${this.edgePort}", options: {advertise: "127.0.0.1:${this.edgePort}"}`
    return `edge: {}\nlisteners: [{binding: edge, ${address}}]`
  }

  /** Stops the router and restarts it on the same port. */
  async restartRouter(): Promise<void> {
    const before = this.controller.channel
    await this.network.closeRouters()
    this.terminators.clear()
    await this.network.running([this.controller.address], this.#sections)
    await eventually(() => this.controller.channel !== before).toBe(true)
    for (const tell of this.#sessions.values()) tell()
  }

  /** Creates an identity and its tunnel, and does not start the tunnel. */
  async tunnel(
    identityId: string,
    services: readonly ShownService[],
    ports: readonly {
      readonly name: string
      readonly port: number
      readonly protocol: 'tcp' | 'udp'
    }[] = [],
  ): Promise<{ readonly api: PlayedApi; readonly tunnel: IdentityTunnel }> {
    const key = await this.network.leaf(identityId, [], [])
    const api = new PlayedApi(identityId, (token) => this.#sendSession(identityId, token, key))
    api.services = services
    const tls = `tls://127.0.0.1:${this.#relay?.port ?? this.edgePort}`
    api.edgeRouters = [{ name: 'edge1', supportedProtocols: { tls } }]
    const at =
      (level: LoggedLine['level']) =>
      (fields: LoggedLine['fields'], message: string): void => {
        this.lines.push({ level, fields: { ...fields, identityId }, message })
      }
    const tunnel = new IdentityTunnel({
      options: { mode: ports.length > 0 ? 'proxy' : 'host', getCircuitTimeout: 10_000 },
      configured: ports,
      anyAddress: '127.0.0.1',
      certificate: this.#certificateFile(identityId, key),
      api,
      origin,
      sockets: new TargetSocketLimiter(),
      version,
      clock: systemClock,
      random: seededRandom(1),
      log: { info: at('info'), warn: at('warn'), error: at('error') },
    })
    this.#tunnels.push(tunnel)
    return { api, tunnel }
  }

  #certificateFile(identityId: string, key: CertificateWithKey): IdentityCertificateFile {
    const identity = { origin, ...key, caPem: this.network.root.certificatePem }
    const path = this.network.path(`${identityId}.json`)
    writeFileSync(path, identityFileText(identity, [origin]), { mode: 0o600 })
    return new IdentityCertificateFile(path, identity)
  }

  logged(message: string): readonly LoggedLine[] {
    return this.lines.filter((line) => line.message.includes(message))
  }

  unroute(circuitId: string): void {
    this.controller.send(unrouteMessage(circuitId, true))
  }

  async close(): Promise<void> {
    await Promise.all(this.#tunnels.map((tunnel) => tunnel.stop()))
    await this.network.close()
    this.#relay?.close()
  }

  #sendSession(identityId: string, token: string, { certificatePem }: CertificateWithKey): void {
    const certFingerprints = [parseCertificate(certificatePem).sha1]
    const message = create(ApiSessionAddedSchema, {
      apiSessions: [{ id: token, token, identityId, certFingerprints }],
    })
    const body = toBinary(ApiSessionAddedSchema, message)
    const tell = (): void => this.controller.send({ contentType: 20_200, body })
    this.#sessions.set(identityId, tell)
    tell()
  }

  #onMessage(message: ChannelMessage): void {
    const { contentType, body } = message
    if (contentType === 20_216) this.#onTerminator(body)
    if (contentType === 20_218) void this.#onCircuit(message)
    if (contentType === 1022) this.#results.get(Buffer.from(body).toString())?.(message)
    if (contentType !== 1038) return
    const { terminatorIds } = fromBinary(RemoveTerminatorsSchema, body)
    for (const id of terminatorIds) this.terminators.delete(id)
    this.controller.channel?.replyResult(message, true)
  }

  #onTerminator(body: Uint8Array): void {
    const asked = fromBinary(CreateTerminatorV2Schema, body)
    this.terminators.set(asked.address, asked)
    const answer = create(CreateTerminatorV2AnswerSchema, { terminatorId: asked.address })
    const told = toBinary(CreateTerminatorV2AnswerSchema, answer)
    this.controller.send({ contentType: 20_217, body: told })
  }

  /** Routes a circuit to a terminator of the same service at the same router. */
  async #onCircuit(message: ChannelMessage): Promise<void> {
    const { channel } = this.controller
    const code = this.refusedCodes.shift()
    if (code !== undefined) {
      channel?.reply(message, circuitRefusalMessage(message, code, 'as the test says'))
      return
    }
    const request = readCircuitRequest(message)
    if (request?.of !== 'client') throw new Error('no request of a client')
    const [, serviceId] = claimsOf(String(request.sessionToken))
    const hosts = [...this.terminators.values()]
    const made = hosts.find((one) => claimsOf(one.sessionToken)[1] === serviceId)
    const id = `circuit-${this.circuits.length + 1}`
    this.circuits.push(id)
    const ends = { id, ingress: `in-${id}`, egress: `out-${id}` }
    const path = { routerIds: [this.network.routerId], links: [], cost: 0 }
    const dial = { binding: 'edge', address: made?.address ?? 'none', peerData: request.peerData }
    const { promise, resolve } = Promise.withResolvers<ChannelMessage>()
    this.#results.set(id, resolve)
    for (const route of buildRouteMessages(ends, path, {
      attempt: 0,
      timeoutMs: 10_000,
      tags: {},
      dial,
    })) {
      this.controller.send(route)
    }
    const { headers } = await promise
    if (!headers.has(1102)) {
      const reason = Buffer.from(headers.get(1103) ?? []).toString()
      channel?.reply(message, circuitRefusalMessage(message, 1, reason))
      return
    }
    const peerData = new Map([...headers].filter(([key]) => key === 1003))
    const circuit = { circuitId: id, ingressAddress: ends.ingress, tags: {}, peerData }
    channel?.reply(message, circuitResponseMessage(message, circuit))
  }
}

/**
 * Relays each connection over a WebSocket to a `wss:` listener. The TLS connection of the tunnel
 * ends at the router.
 */
class WebSocketRelay {
  readonly port: number
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
    this.port = listeningPort(server)
  }

  static async open(routerPort: number): Promise<WebSocketRelay> {
    const server = createServer({ noDelay: true }, (socket) => {
      const stream = webSocketStream(routerPort)
      socket.on('error', () => stream.destroy()).pipe(stream)
      stream.on('error', () => socket.destroy()).pipe(socket)
    })
    await startListening(server, { host: '127.0.0.1', port: 0 })
    return new WebSocketRelay(server)
  }

  close(): void {
    this.#server.close()
  }
}

/** Type, service, identity and ID of a service session. */
function claimsOf(token: string): readonly string[] {
  const [, claims = ''] = token.split('.')
  const { jti } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { jti: string }
  return jti.split('/')
}

export { eventually, SessionEndedError }
