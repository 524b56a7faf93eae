import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import type { Duplex } from 'node:stream'
import { connect, type TLSSocket } from 'node:tls'
import { createWebSocketStream, WebSocket } from 'ws'

import {
  ApiSessionAddedSchema,
  ApiSessionRemovedSchema,
  type CreateTerminatorResult,
  type CreateTerminatorV2,
  CreateTerminatorV2AnswerSchema,
  CreateTerminatorV2Schema,
  SessionRemovedSchema,
} from '../../../proto/gen/router_pb.ts'
import { Channel } from '../../../src/channel/channel.ts'
import type { ChannelMessage, OutboundMessage } from '../../../src/channel/frame.ts'
import { encodeBytesMap } from '../../../src/channel/header-maps.ts'
import {
  encodeFlag,
  encodeInt32,
  readInt32,
  readText,
  encodeText,
} from '../../../src/channel/headers.ts'
import { channelLimits } from '../../../src/channel/limits.ts'
import { parseRouterConfig } from '../../../src/config/router/load.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { CertificateWithKey } from '../../../src/pki/authority/authority.ts'
import { parseCertificate } from '../../../src/pki/certificate.ts'
import type { ControlConnection } from '../../../src/router/controllers/control-connection.ts'
import { ControllerRequestLimiter } from '../../../src/router/controllers/controller-request-limiter.ts'
import { EdgeService } from '../../../src/router/edge/edge.ts'
import { modelLimits } from '../../../src/router/model/limits.ts'
import { RouterDataModel } from '../../../src/router/model/router-data-model.ts'
import { ReloadableIdentity } from '../../../src/router/identity/reloadable-identity.ts'
import { eventually, type LoggedLine, TestNetwork, trustDomain, version } from '../support.ts'
import { socketLimits } from '../../../src/overlay/sockets/limits.ts'
import { TlsPortOpener } from '../../../src/overlay/sockets/tls-port-opener.ts'
import { TestCircuits } from './circuits.ts'

export { eventually }

/** A client of the API: its session, and the certificate of that session. */
export interface Person {
  readonly identityId: string
  readonly sessionId: string
  readonly token: string
  readonly key: CertificateWithKey
}

/** The connection between the edge and a controller that the test plays. */
export class FakeController {
  readonly id: string
  readonly sent: (OutboundMessage & { readonly sequence: number })[] = []
  /** For each request, the time that the router would wait for the answer. */
  readonly timeoutsMs: { readonly contentType: number; readonly timeoutMs: number | undefined }[] =
    []
  readonly #waiters = new Map<number, PromiseWithResolvers<ChannelMessage>>()
  /** Number of the last message that was a request. The router also sends reports at any time. */
  #lastRequest = 0
  readonly connection: ControlConnection
  #edge: EdgeService | null = null
  /** Answers requests for circuits; null: gives no answer. */
  circuits: ((request: OutboundMessage) => OutboundMessage | null) | null = null
  postures: (() => OutboundMessage | null) | null = null
  terminators: ((asked: CreateTerminatorV2) => Partial<Answer> | null) | null = () => ({})

  constructor(id: string) {
    this.id = id
    const channel = {
      isClosed: false,
      send: (outgoing: OutboundMessage) => this.#take(outgoing),
      request: (outgoing: OutboundMessage, timeoutMs?: number) => {
        this.timeoutsMs.push({ contentType: outgoing.contentType, timeoutMs })
        return this.#request(outgoing)
      },
      reply: () => true,
    } as unknown as Channel
    this.connection = {
      id,
      address: 'tls:c:1',
      keySha256: '',
      version: 'v2.0.0',
      channel,
      connectedAtMs: 0,
    }
  }

  attachTo(edge: EdgeService): void {
    this.#edge = edge
  }

  ofType(contentType: number): OutboundMessage[] {
    return this.sent.filter((message) => message.contentType === contentType)
  }

  /** Delivers a message as if from the controller. */
  tell({ contentType, headers, body }: OutboundMessage): void {
    const message = {
      contentType,
      sequence: 1,
      headers: headers ?? new Map<number, Uint8Array>(),
      body: body ?? new Uint8Array(),
    }
    this.#edge?.messages().get(contentType)?.(this.connection, message)
  }

  tellSessions(
    people: readonly Person[],
    options: {
      readonly isFull?: boolean
      readonly state?: object
      readonly fingerprints?: readonly string[]
    } = {},
  ): void {
    const { isFull = false, state, fingerprints } = options
    const message = create(ApiSessionAddedSchema, {
      isFullState: isFull,
      apiSessions: people.map(({ sessionId, token, identityId, key }) => ({
        id: sessionId,
        token,
        identityId,
        certFingerprints: [...(fingerprints ?? [parseCertificate(key.certificatePem).sha1])],
      })),
    })
    const headers = new Map<number, Uint8Array>()
    if (state !== undefined) headers.set(1014, encodeText(JSON.stringify(state)))
    this.tell({ contentType: 20_200, headers, body: toBinary(ApiSessionAddedSchema, message) })
  }

  removeSession({ token, sessionId }: Person): void {
    const message = create(ApiSessionRemovedSchema, { tokens: [token], ids: [sessionId] })
    this.tell({ contentType: 20_202, body: toBinary(ApiSessionRemovedSchema, message) })
  }

  endServiceSession(token: string, id: string): void {
    const message = create(SessionRemovedSchema, { tokens: [token], ids: [id] })
    this.tell({ contentType: 20_102, body: toBinary(SessionRemovedSchema, message) })
  }

  #take(outgoing: OutboundMessage): boolean {
    this.sent.push({ ...outgoing, sequence: this.sent.length })
    if (outgoing.contentType === 20_216) this.#answerTerminator(outgoing)
    return true
  }

  #answerTerminator({ body }: OutboundMessage): void {
    const asked = fromBinary(CreateTerminatorV2Schema, body ?? new Uint8Array())
    const answer = this.terminators?.(asked) ?? null
    if (answer === null) return
    const message = create(CreateTerminatorV2AnswerSchema, {
      terminatorId: asked.address,
      ...answer,
    })
    const told = toBinary(CreateTerminatorV2AnswerSchema, message)
    setImmediate(() => this.tell({ contentType: 20_217, body: told }))
  }

  #request(outgoing: OutboundMessage): Promise<ChannelMessage> {
    this.#take(outgoing)
    const sequence = this.sent.length
    this.#lastRequest = sequence
    const waiter = Promise.withResolvers<ChannelMessage>()
    this.#waiters.set(sequence, waiter)
    const answer = this.#answerTo(outgoing)
    if (answer !== null) setImmediate(() => this.answer(answer, sequence))
    return waiter.promise
  }

  #answerTo(outgoing: OutboundMessage): OutboundMessage | null {
    const { contentType } = outgoing
    if (contentType === 20_218 || contentType === 20_222) return this.circuits?.(outgoing) ?? null
    if (contentType === 29_000 && this.postures !== null) return this.postures()
    return { contentType: 2, headers: new Map([[2, encodeFlag(true)]]) }
  }

  /**
   * Answers the last request of the router, or the request with the given number.
   *
   * @throws if the router has sent no such request.
   */
  answer({ contentType, headers, body }: OutboundMessage, sequence = this.#lastRequest): void {
    const waiter = this.#waiters.get(sequence)
    if (waiter === undefined) throw new Error(`message ${sequence} is not a request of the router`)
    waiter.resolve({
      contentType,
      sequence: 0,
      headers: headers ?? new Map<number, Uint8Array>(),
      body: body ?? new Uint8Array(),
    })
  }
}

interface Answer {
  readonly result: CreateTerminatorResult
  readonly msg: string
  readonly errorCode: number
  readonly retryHint: number
}

export function madeCircuit(id: string, peerData = new Map<number, Uint8Array>()): OutboundMessage {
  return {
    contentType: 20_219,
    headers: new Map([
      [11, encodeText(id)],
      [12, encodeText(`in-${id}`)],
      [10, encodeBytesMap(peerData)],
    ]),
  }
}

export function refusedCircuit(text: string, code: number): OutboundMessage {
  return {
    contentType: 20_002,
    headers: new Map([[1014, encodeInt32(code)]]),
    body: encodeText(text),
  }
}

/** The token of a service session, as a controller issues it to a client. */
export function serviceToken(id: string): string {
  const claims = Buffer.from(JSON.stringify({ jti: id, z_st: 'Dial' })).toString('base64url')
  return `eyJhbGciOiJFUzI1NiJ9.${claims}.c2ln`
}

export interface TestClientOptions {
  /** Application protocols of TLS; null: the client offers none. */
  readonly protocols?: string[] | null
  readonly token?: string
  readonly key?: CertificateWithKey | null
  /** Opens the stream that carries TLS; default: TCP. */
  readonly through?: (port: number) => Duplex
}

/** The byte stream of a WebSocket to a `wss:` listener. */
export function webSocketStream(port: number): Duplex {
  // Like a browser: a port that several listeners share selects the listener by this protocol.
  const options = { rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] }
  const web = new WebSocket(`wss://127.0.0.1:${port}/ws`, options)
  return createWebSocketStream(web).on('error', () => undefined)
}

/** A client program with a real TLS channel. */
export class TestClient {
  readonly received: ChannelMessage[] = []
  readonly channel: Channel
  readonly socket: TLSSocket
  answer: ChannelMessage | null = null
  closedReason: string | null = null
  onMessage: (message: ChannelMessage) => void = () => undefined

  private constructor(socket: TLSSocket, token: string) {
    this.socket = socket
    this.channel = new Channel({
      socket,
      limits: { ...channelLimits, messagesPerSecondMax: Infinity, bytesPerSecondMax: Infinity },
      clock: systemClock,
      hello: {
        contentType: 0,
        sequence: -1,
        headers: new Map([[1002, encodeText(token)]]),
        body: encodeText('client'),
      },
      onHello: (message) => {
        this.answer = message
        this.channel.open(null)
      },
      onMessage: (message) => {
        this.received.push(message)
        this.onMessage(message)
        return null
      },
      onClose: (reason) => {
        this.closedReason = reason
      },
    })
  }

  static async open(
    port: number,
    person: Person,
    options: TestClientOptions = {},
  ): Promise<TestClient> {
    const { token = person.token, key = person.key, protocols = ['ziti-edge'] } = options
    const stream = options.through?.(port)
    const socket = connect({
      ...(stream === undefined ? { host: '127.0.0.1', port } : { socket: stream }),
      ...(protocols === null ? {} : { ALPNProtocols: protocols }),
      rejectUnauthorized: false,
      ...(key === null ? {} : { cert: key.certificatePem, key: key.privateKeyPem }),
    })
    socket.on('error', () => undefined)
    const client = new TestClient(socket, token)
    await eventually(() => client.answer !== null || client.closedReason !== null).toBe(true)
    return client
  }

  get isAdmitted(): boolean {
    return this.answer?.headers.get(2)?.[0] === 1
  }

  get refusal(): string {
    return Buffer.from(this.answer?.body ?? new Uint8Array()).toString()
  }

  ofType(contentType: number, connectionId?: number): ChannelMessage[] {
    return this.received.filter(
      (message) =>
        message.contentType === contentType &&
        (connectionId === undefined || idOf(message) === connectionId),
    )
  }

  textsOf(connectionId: number): string[] {
    return this.ofType(60_786, connectionId).map(({ body }) => Buffer.from(body).toString())
  }

  send(
    contentType: number,
    connectionId: number,
    body: string | Uint8Array = '',
    more: readonly (readonly [number, Uint8Array])[] = [],
  ): void {
    this.channel.send(messageOf(contentType, connectionId, body, more))
  }

  request(
    contentType: number,
    connectionId: number,
    body: string,
    more: readonly (readonly [number, Uint8Array])[] = [],
  ): Promise<ChannelMessage> {
    return this.channel.request(messageOf(contentType, connectionId, body, more), 20_000)
  }

  reply(to: ChannelMessage, contentType: number, body: string | Uint8Array = ''): void {
    this.channel.reply(to, messageOf(contentType, idOf(to), body, []))
  }
}

export function idOf({ headers }: Pick<ChannelMessage, 'headers'>): number {
  return (readInt32(headers, 1000) ?? 0) >>> 0
}

export const textOf = (message: ChannelMessage, key: number): string | null =>
  readText(message.headers, key)

function messageOf(
  contentType: number,
  connectionId: number,
  body: string | Uint8Array,
  more: readonly (readonly [number, Uint8Array])[],
): OutboundMessage {
  return {
    contentType,
    headers: new Map([...more, [1000, encodeInt32(connectionId)]]),
    body: typeof body === 'string' ? encodeText(body) : body,
  }
}

/**
 * The edge of a router with a listener, a controller and circuits; the test plays the controller
 * and the other ends of the circuits.
 */
export class EdgeBench {
  readonly network: TestNetwork
  readonly edge: EdgeService
  readonly circuits = new TestCircuits()
  /** Data model of the router, as controllers sent it. */
  readonly model = new RouterDataModel(modelLimits)
  /** Ms by which the clock of the router is ahead. */
  aheadMs = 0
  readonly lines: LoggedLine[] = []
  readonly controllers: FakeController[]
  readonly #clients: TestClient[] = []
  readonly #isWeb: boolean

  private constructor(
    network: TestNetwork,
    controllerIds: readonly string[],
    options: string,
    sections: string,
    protocol: 'tls' | 'wss',
  ) {
    this.network = network
    this.#isWeb = protocol === 'wss'
    this.controllers = controllerIds.map((id) => new FakeController(id))
    const at =
      (level: LoggedLine['level']) =>
      (fields: LoggedLine['fields'], message: string): void => {
        this.lines.push({ level, fields, message })
      }
    const log = { info: at('info'), warn: at('warn'), error: at('error') }
    const text = `v: 3
identity: {cert: r.cert, key: r.key, server_cert: r.server.cert, server_key: r.server.key, ca: r.ca}
ctrl: {endpoint: "tls:127.0.0.1:1"}
csr: {sans: {ip: [127.0.0.1]}}
edge: {heartbeatIntervalSeconds: 10}
listeners: [{binding: edge, bind: "${protocol}:127.0.0.1:0", options: {advertise: "127.0.0.1:1"${options}}}]
${sections}
`
    const loaded = parseRouterConfig(network.path('router.yml'), text, {})
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
    const holder = new ReloadableIdentity(loaded.config.identity, () => Date.now(), log)
    this.edge = new EdgeService({
      ports: new TlsPortOpener({ ...socketLimits, addresses: [], handshakeTimeoutMs: 5000, log }),
      config: loaded.config,
      identity: () => holder.current(),
      version,
      clock: {
        nowMs: () => systemClock.nowMs() + this.aheadMs,
        monotonicMs: () => systemClock.monotonicMs() + this.aheadMs,
      },
      log,
      connections: () => this.controllers.map(({ connection }) => connection),
      trustDomain: () => trustDomain,
      circuits: this.circuits,
      operations: new ControllerRequestLimiter(loaded.config.forwarder),
      model: this.model,
    })
    for (const controller of this.controllers) controller.attachTo(this.edge)
  }

  static async open(
    options: {
      readonly controllers?: readonly string[]
      readonly options?: string
      readonly sections?: string
      /** Protocol of the router's listener for clients; default: tls. */
      readonly protocol?: 'tls' | 'wss'
    } = {},
  ): Promise<EdgeBench> {
    const network = await TestNetwork.create()
    const { controllers = ['ctrl1'], options: more = ', lookupApiSessionTimeout: 100ms' } = options
    const { sections = '', protocol = 'tls' } = options
    const bench = new EdgeBench(network, controllers, more, sections, protocol)
    await bench.edge.start()
    return bench
  }

  get controller(): FakeController {
    const [controller] = this.controllers
    if (controller === undefined) throw new Error('no controller')
    return controller
  }

  /** A client with an API session that no controller has reported yet. */
  async person(name: string, uris: readonly string[] = []): Promise<Person> {
    const key = await this.network.leaf(name, uris, [])
    return { identityId: name, sessionId: `${name}-session`, token: `1.${name}.mac`, key }
  }

  async admitted(name: string): Promise<TestClient> {
    const person = await this.person(name)
    this.controller.tellSessions([person])
    return await this.connect(person)
  }

  async connect(person: Person, options: TestClientOptions = {}): Promise<TestClient> {
    const [port = 0] = this.edge.ports
    const through = this.#isWeb ? { through: webSocketStream } : {}
    const client = await TestClient.open(port, person, { ...through, ...options })
    this.#clients.push(client)
    return client
  }

  logged(text: string): readonly LoggedLine[] {
    return this.lines.filter(({ message }) => message.includes(text))
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.channel.close('over')
    await this.edge.stop()
    await this.network.close()
  }
}
