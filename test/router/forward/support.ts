import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { type Duplex, duplexPair } from 'node:stream'

import {
  CircuitConfirmationSchema,
  FaultSchema,
  type FaultSubject,
  UnrouteSchema,
} from '../../../proto/gen/router_pb.ts'
import { Channel } from '../../../src/channel/channel.ts'
import type { ChannelMessage, OutboundMessage } from '../../../src/channel/frame.ts'
import {
  encodeInt32,
  readInt32,
  readText,
  encodeText,
  encodeUint64,
} from '../../../src/channel/headers.ts'
import { channelLimits } from '../../../src/channel/limits.ts'
import { circuitDataTypes } from '../../../src/channel/messages/payload.ts'
import { parseRouterConfig } from '../../../src/config/router/load.ts'
import {
  type CircuitEndpointAddresses,
  buildRouteMessages,
  type RouteParameters,
} from '../../../src/fabric/circuits/route.ts'
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import type { LiveLink } from '../../../src/ports/live-table.ts'
import type { ControlConnection } from '../../../src/router/controllers/control-connection.ts'
import type {
  FrameDestination,
  TerminatorDialer,
} from '../../../src/overlay/circuits/circuit-endpoint.ts'
import { Forwarder } from '../../../src/router/forward/forwarder.ts'
import { Link } from '../../../src/router/links/link.ts'
import type { LoggedLine } from '../support.ts'
import { unrouteMessage } from '../../../src/channel/messages/circuits.ts'

const helloMessage = {
  contentType: 0,
  sequence: -1,
  headers: new Map<number, Uint8Array>(),
  body: encodeText('test'),
}

type OnMessage = (message: ChannelMessage) => void

/**
 * Both sides of one channel, in memory. Each side has already sent its hello, so both may send
 * immediately.
 */
export function channelPair(first: OnMessage, second: OnMessage): readonly [Channel, Channel] {
  const [one, other] = duplexPair()
  return [openChannel(one, first), openChannel(other, second)]
}

function openChannel(socket: Duplex, onMessage: OnMessage): Channel {
  const channel: Channel = new Channel({
    socket,
    limits: { ...channelLimits, unmeteredTypes: circuitDataTypes },
    clock: systemClock,
    hello: helloMessage,
    onHello: () => channel.open(null),
    onMessage: (message) => {
      onMessage(message)
      return null
    },
    onClose: () => undefined,
  })
  return channel
}

/** A router without sockets: forwarding and channels are real. */
export class TestRouter {
  readonly id: string
  readonly lines: LoggedLine[] = []
  readonly forwarder: Forwarder
  readonly connections: ControlConnection[] = []

  /** @param options lines of the configuration section `forwarder`. */
  constructor(id: string, options = '', clock: Clock = systemClock, bufferedBytesMax?: number) {
    this.id = id
    const text = `v: 3\nidentity: {cert: c, key: k}\nctrl: {endpoint: "tls:127.0.0.1:1"}\nforwarder: {${options}}\n`
    const loaded = parseRouterConfig('/nowhere/r.yml', text, {})
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
    const at =
      (level: LoggedLine['level']) =>
      (fields: LoggedLine['fields'], message: string): void => {
        this.lines.push({ level, fields, message })
      }
    this.forwarder = new Forwarder({
      routerId: id,
      config: loaded.config.forwarder,
      clock,
      log: { info: at('info'), warn: at('warn'), error: at('error') },
      connections: () => this.connections,
      ...(bufferedBytesMax === undefined ? {} : { bufferedBytesMax }),
    })
    this.forwarder.start()
  }

  logged(message: string): readonly LoggedLine[] {
    return this.lines.filter((line) => line.message.includes(message))
  }

  receive(connection: ControlConnection, message: ChannelMessage): void {
    this.forwarder.messages().get(message.contentType)?.(connection, message)
  }

  /** @returns a place that records the messages that arrive; it processes none of them. */
  attach(
    owner: TestController,
    circuit: CircuitEndpointAddresses,
    isTerminator: boolean,
  ): TestPlace {
    const place = new TestPlace(this, owner, circuit, isTerminator)
    this.forwarder.attach(place.circuit, place)
    return place
  }
}

/** A circuit endpoint outside the router; it records every message that arrives. */
export class TestPlace implements FrameDestination {
  readonly got: ChannelMessage[] = []
  readonly circuit
  isUnrouted = false
  /** The number of messages that this end still accepts. */
  room = Infinity
  readonly #router: TestRouter

  constructor(
    router: TestRouter,
    owner: TestController,
    ends: CircuitEndpointAddresses,
    isTerminator: boolean,
  ) {
    this.#router = router
    const address = isTerminator ? ends.egress : ends.ingress
    this.circuit = { id: ends.id, address, owner: owner.connectionOf(router), isTerminator }
  }

  get bodies(): string[] {
    return this.got.map(({ body }) => Buffer.from(body).toString())
  }

  forward(message: ChannelMessage): boolean {
    if (this.got.length >= this.room) return false
    this.got.push(message)
    return true
  }

  onUnrouted(): void {
    this.isUnrouted = true
  }

  send(text: string, contentType = 1100): void {
    this.#router.forwarder.enter(this.circuit, frame(this.circuit.id, text, contentType))
  }

  leave(): void {
    this.#router.forwarder.leave(this.circuit, 'over')
  }
}

export function frame(circuitId: string, text: string, contentType = 1100): ChannelMessage {
  const headers = new Map([
    [2256, encodeText(circuitId)],
    [2257, encodeUint64(1n)],
    [2258, encodeInt32(0)],
  ])
  return { contentType, sequence: 0, headers, body: encodeText(text) }
}

export interface TestLink extends Pick<LiveLink, 'id'> {
  readonly ofFirst: Link
  readonly ofSecond: Link
  cut(): void
}

/** A link between two routers, in memory. */
export function linked(first: TestRouter, second: TestRouter, id: string): TestLink {
  const [one, other] = channelPair(
    (message) => first.forwarder.onLinkMessage(ofFirst, message),
    (message) => second.forwarder.onLinkMessage(ofSecond, message),
  )
  const ofFirst = linkOf(id, second.id, one)
  const ofSecond = linkOf(id, first.id, other)
  first.forwarder.addLink(ofFirst)
  second.forwarder.addLink(ofSecond)
  return {
    id,
    ofFirst,
    ofSecond,
    cut: () => {
      one.close('cut')
      other.close('cut')
      first.forwarder.removeLink(ofFirst)
      second.forwarder.removeLink(ofSecond)
    },
  }
}

function linkOf(id: string, peerId: string, channel: Channel): Link {
  const addresses = { dialAddress: '', localAddress: '', remoteAddress: '' }
  const queues = { payloadsMax: Infinity, acknowledgementsMax: Infinity }
  return new Link({ id, peerId, iteration: 1, isDialed: true, ...addresses, channel, queues })
}

/** A controller as its routers see it; it sends the same messages as our controllers. */
export class TestController {
  readonly id: string
  readonly received: { readonly routerId: string; readonly message: ChannelMessage }[] = []
  readonly #channels = new Map<string, Channel>()

  constructor(id = 'c1') {
    this.id = id
  }

  connect(router: TestRouter): void {
    const [ofRouter, own] = channelPair(
      (message) => router.receive(connection, message),
      (message) => this.received.push({ routerId: router.id, message }),
    )
    const connection: ControlConnection = {
      id: this.id,
      address: '',
      keySha256: '',
      version: 'v2.0.0',
      channel: ofRouter,
      connectedAtMs: 0,
    }
    this.#channels.set(router.id, own)
    router.connections.push(connection)
    router.forwarder.onConnected(connection)
  }

  disconnect(router: TestRouter): void {
    const at = router.connections.findIndex(({ id }) => id === this.id)
    router.connections.splice(at, 1)
    this.#channels.get(router.id)?.close('away')
    this.#channels.delete(router.id)
  }

  connectionOf(router: TestRouter): ControlConnection {
    const connection = router.connections.find(({ id }) => id === this.id)
    if (connection === undefined) throw new Error(`${router.id} is not connected`)
    return connection
  }

  send(router: TestRouter, outgoing: OutboundMessage): void {
    this.#channels.get(router.id)?.send(outgoing)
  }

  async ask(router: TestRouter, outgoing: OutboundMessage): Promise<RouteAnswer> {
    const channel = this.#channels.get(router.id)
    if (channel === undefined) throw new Error(`${router.id} is not connected`)
    const { headers, body, contentType } = await channel.request(outgoing)
    return {
      contentType,
      circuitId: Buffer.from(body).toString(),
      attempt: readInt32(headers, 1101),
      isSuccess: headers.has(1102),
      error: readText(headers, 1103),
      errorCode: headers.get(1104)?.[0] ?? null,
      headers,
    }
  }

  /** Sends each router of the path its route; the last router dials a terminator. */
  async lay(
    ends: CircuitEndpointAddresses,
    routers: readonly TestRouter[],
    links: readonly Pick<LiveLink, 'id'>[],
    terms: LayTerms = {},
  ): Promise<readonly RouteAnswer[]> {
    const { attempt = 0, timeoutMs = 10_000, binding = 'test', destination = 'host' } = terms
    const dial = { binding, address: destination, peerData: terms.peerData ?? new Map() }
    const path = { routerIds: routers.map(({ id }) => id), links: links as LiveLink[], cost: 0 }
    const isReroute = terms.isReroute === true
    const { tags = {}, trace } = terms
    const traced = trace === undefined ? {} : { trace }
    const more = { attempt, timeoutMs, tags, dial: isReroute ? null : dial, ...traced }
    const routes = buildRouteMessages(ends, path, more)
    return await Promise.all(
      routers.map((router, at) => this.ask(router, routes[at] ?? { contentType: 0 })),
    )
  }

  unroute(router: TestRouter, circuitId: string, isNow: boolean): void {
    this.send(router, unrouteMessage(circuitId, isNow))
  }

  /** Each fault that a router has reported, as `subject ids`. */
  faults(router: TestRouter): { readonly subject: FaultSubject; readonly ids: string[] }[] {
    return this.#ofType(router, 1004).map((body) => {
      const { subject, id } = fromBinary(FaultSchema, body)
      return { subject, ids: id.split(' ') }
    })
  }

  /** For each confirmation message, the ms without traffic by circuit. */
  confirmations(router: TestRouter): Readonly<Record<string, number>>[] {
    return this.#ofType(router, 1034).map((body) => {
      const { circuitIds, idleTimes } = fromBinary(CircuitConfirmationSchema, body)
      return Object.fromEntries(
        circuitIds.map((id) => [id, Number((idleTimes[id] ?? 0n) / 1_000_000n)]),
      )
    })
  }

  #ofType(router: TestRouter, contentType: number): Uint8Array[] {
    return this.received
      .filter(
        ({ routerId, message }) => routerId === router.id && message.contentType === contentType,
      )
      .map(({ message }) => message.body)
  }
}

export interface RouteAnswer {
  readonly contentType: number
  readonly circuitId: string
  readonly attempt: number | null
  readonly isSuccess: boolean
  readonly error: string | null
  readonly errorCode: number | null
  readonly headers: ChannelMessage['headers']
}

export interface LayTerms {
  readonly attempt?: number
  readonly timeoutMs?: number
  readonly binding?: string
  readonly destination?: string
  readonly peerData?: ReadonlyMap<number, Uint8Array>
  readonly isReroute?: boolean
  readonly tags?: Readonly<Record<string, string>>
  readonly trace?: RouteParameters['trace']
}

export function unroute(circuitId: string, now: boolean): OutboundMessage {
  return {
    contentType: 1006,
    body: toBinary(UnrouteSchema, create(UnrouteSchema, { circuitId, now })),
  }
}

export function endsOf(id: string): CircuitEndpointAddresses {
  return { id, ingress: `ingress of ${id}`, egress: `egress of ${id}` }
}

/** Attaches the requested targets, and keeps them by the name of the circuit endpoint. */
export class TestDialer implements TerminatorDialer {
  readonly places = new Map<string, TestPlace>()
  readonly #router: TestRouter
  readonly #owner: TestController

  constructor(router: TestRouter, owner: TestController) {
    this.#router = router
    this.#owner = owner
    router.forwarder.registerDialer('test', this)
  }

  dial({
    circuit,
  }: Parameters<TerminatorDialer['dial']>[0]): Promise<ReadonlyMap<number, Uint8Array>> {
    const ends = { id: circuit.id, ingress: '', egress: circuit.address }
    this.places.set(circuit.address, this.#router.attach(this.#owner, ends, true))
    return Promise.resolve(new Map([[1110, encodeText('local')]]))
  }

  placeOf({ egress }: CircuitEndpointAddresses): TestPlace {
    const place = this.places.get(egress)
    if (place === undefined) throw new Error('it was not dialed')
    return place
  }
}
