import type { ChannelMessage, OutboundMessage } from '../../channel/frame.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import type { Clock } from '../../lib/clock.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import type { ControlConnection, ControlMessageTable } from '../controllers/control-connection.ts'
import { circuitLimits } from '../../overlay/circuits/limits.ts'
import { forwardLimits } from './limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import type {
  CircuitApplication,
  CircuitEndpoint,
  FrameDestination,
  LocalCircuit,
  LocalCircuits,
  TerminatorDialer,
} from '../../overlay/circuits/circuit-endpoint.ts'
import { type CarriedCircuit, CarriedCircuits, type FramePeer } from './carried-circuits.ts'
import { CircuitUsageCounters } from './circuit-usage-counters.ts'
import { CircuitFaultReporter } from './circuit-fault-reporter.ts'
import type { Route } from '../../channel/messages/circuits.ts'
import { LocalDeliveryQueue } from './local-delivery-queue.ts'
import type { TransmitKind } from '../../overlay/circuits/payload-outbox.ts'
import {
  readCircuitId,
  circuitContentType,
  withoutChannelHeaders,
  routeTraceResponseMessage,
} from '../../channel/messages/payload.ts'
import { closedCircuitEndpoint } from '../../overlay/circuits/closed-circuit-endpoint.ts'
import { remainingTraceHops, withRemainingHops } from '../../channel/messages/route-trace.ts'
import { type RoutedCircuits, RouteHandler } from './route-handler.ts'
import { circuitEndpointSide, CircuitTraffic } from './circuit-traffic.ts'
import type { BufferBudget } from '../../overlay/circuits/xgress-deps.ts'
import { Xgress } from '../../overlay/circuits/xgress.ts'
import { xgressOptions } from '../../overlay/circuits/xgress-options.ts'
import type { UsageCounterKind } from '../../channel/messages/reports.ts'

/** A link to another router, as far as the forwarder uses it. */
interface ForwardLink {
  readonly id: string
  readonly peerId: string
  /** Time since the peer last answered a heartbeat, ms. */
  readonly silentForMs: number
  /** See `Channel.trySend`. */
  trySend(outgoing: OutboundMessage, queuedBytesMax: number): boolean
  /** See `Channel.onceWritable`. */
  onceWritable(callback: () => void): void
}

interface ForwarderDeps {
  readonly routerId: string
  readonly config: RouterConfig['forwarder']
  readonly clock: Clock
  readonly log: ProgramLogger
  readonly connections: () => readonly ControlConnection[]
  /** Maximum bytes that circuit endpoints buffer; absent: the default limit. */
  readonly bufferedBytesMax?: number
}

/** Source of a frame. Sources with the same `sharer` count as one in fair scheduling. */
interface Sender extends FramePeer {
  readonly sharer?: string
}

/** Outcome for a frame; `astray`: the frame has no next hop. */
type Fate = 'sent' | 'full' | 'astray'

const { payloadsQueuedBytesMax, acknowledgementsQueuedBytesMax, ticksEveryMs } = circuitLimits

/**
 * Forwards the frames of circuits: circuit and source of a frame determine its next hop. Accepts
 * frames from a link only for circuits that a controller has routed over this link.
 */
export class Forwarder implements LocalCircuits, RoutedCircuits {
  readonly #deps: ForwarderDeps
  readonly #circuits: CarriedCircuits
  readonly #faults: CircuitFaultReporter
  readonly #routes: RouteHandler
  readonly #deliveries = new LocalDeliveryQueue()
  readonly #buffered: FairShare
  /** Links by ID, with the number of frames that were dropped because the link was full. */
  readonly #links = new Map<string, { readonly link: ForwardLink; dropped: number }>()
  /** Open circuit endpoints, including those of circuits that have ended. */
  readonly #streams = new Set<Xgress>()
  readonly #wakers = new WeakMap<Xgress, () => void>()
  /** Circuits to remove once no more frames arrive, with the time of the next check. */
  readonly #leaving = new Map<CarriedCircuit, { readonly sinceMs: number; dueMs: number }>()
  #ticker: NodeJS.Timeout | null = null
  #leaveTimer: NodeJS.Timeout | null = null
  #messages = 0
  #bytes = 0
  #retransmissions = 0
  readonly #traffic = new CircuitTraffic()
  readonly usages: CircuitUsageCounters

  constructor(deps: ForwarderDeps) {
    this.#deps = deps
    this.#circuits = new CarriedCircuits(deps.clock)
    this.usages = new CircuitUsageCounters(deps.clock)
    this.#faults = new CircuitFaultReporter({
      ...deps,
      circuits: this.#circuits,
      isPassable: (circuitId, from) => this.#isPassable(circuitId, from),
      onAbandoned: (circuit) => this.#remove(circuit),
    })
    this.#buffered = new FairShare(deps.bufferedBytesMax ?? circuitLimits.bufferedBytesMax)
    this.#routes = new RouteHandler({ ...deps, circuits: this })
  }

  /** Registers the dialer for terminators of this binding. */
  registerDialer(binding: string, dialer: TerminatorDialer): void {
    this.#routes.registerDialer(binding, dialer)
  }

  messages(): ControlMessageTable {
    return this.#routes.messages()
  }

  start(): void {
    this.#faults.start()
  }

  stop(): void {
    this.#faults.stop()
    this.#routes.stop()
    for (const circuit of Array.from(this.#circuits.all())) {
      this.#remove(circuit)
    }
    for (const stream of Array.from(this.#streams)) stream.close('the router stops')
    if (this.#ticker !== null) clearInterval(this.#ticker)
    if (this.#leaveTimer !== null) clearTimeout(this.#leaveTimer)
    this.#ticker = null
    this.#leaveTimer = null
  }

  onConnected(connection: ControlConnection): void {
    this.#faults.onConnected(connection)
  }

  addLink(link: ForwardLink): void {
    this.#links.set(link.id, { link, dropped: 0 })
  }

  removeLink(link: ForwardLink): void {
    if (this.#links.get(link.id)?.link === link) this.#links.delete(link.id)
  }

  /** Handles a frame from the peer of the link; ignores messages that are no frames. */
  onLinkMessage(link: ForwardLink, message: ChannelMessage): void {
    const { payload, acknowledgement, control } = circuitContentType
    const { contentType } = message
    if (contentType !== payload && contentType !== acknowledgement && contentType !== control) {
      return
    }
    const from = { address: link.id, peerId: link.peerId }
    if (this.#links.get(link.id)?.link !== link) return
    const circuitId = readCircuitId(message)
    if (circuitId === null) {
      this.#faults.unreadable(from)
      return
    }
    this.#traffic.received('fabric', message)
    const circuit = this.#circuits.get(circuitId)
    if (circuit !== undefined) circuit.receivedMs = this.#deps.clock.monotonicMs()
    const fate = this.#forward(circuit, from, message, bytesMaxOf(contentType))
    // @guard circuits-at-a-router--usage
    if (fate === 'astray') this.#faults.miss(circuitId, from)
    // Counts bytes only for routers on the path of the circuit.
    else this.#use(circuit, 'fabric.rx', message)
  }

  admit(circuitId: string, ownerId: string): CarriedCircuit | null {
    return this.#circuits.take(circuitId, ownerId)
  }

  handOver(circuit: CarriedCircuit, to: ControlConnection): void {
    if (circuit.ownerId === to.id) return
    this.#circuits.give(circuit, to.id)
    if (circuit.closedBy !== null) this.#faults.ended(circuit)
  }

  circuit(circuitId: string): CarriedCircuit | undefined {
    return this.#circuits.get(circuitId)
  }

  route(
    circuit: CarriedCircuit,
    { forwards, isReroute }: Pick<Route, 'forwards' | 'isReroute'>,
  ): { kind: 'link' | 'end'; address: string } | null {
    const kinds = new Map(forwards.map(({ to, kind }) => [to, kind]))
    const hops = forwards.map(({ from, to }) => ({
      from: this.#placeOf(from, kinds.get(from)),
      to: this.#placeOf(to, kinds.get(to)),
    }))
    for (const { to, kind } of forwards) {
      if (kind === 'link' && !this.#links.has(to)) {
        this.#faults.invalidLink(to)
        return { kind, address: to }
      }
      if (kind === 'link' && !circuit.isRouted && this.#isUnresponsive(to)) {
        return { kind, address: to }
      }
      // A client's endpoint opens only after the first route was set up.
      const isEnd = kind === 'end' || (kind === 'start' && isReroute)
      if (isEnd && !circuit.ends.has(to)) return { kind: 'end', address: to }
    }
    for (const { from, to } of hops) circuit.route(from, to)
    this.#leaving.delete(circuit)
    return null
  }

  #isUnresponsive(linkId: string): boolean {
    const silentForMs = this.#links.get(linkId)?.link.silentForMs ?? 0
    return silentForMs >= this.#deps.config.unresponsiveLinkTimeout
  }

  /**
   * Link or endpoint with this address. Without a declared kind, it is the link with this ID, if
   * any.
   */
  #placeOf(address: string, kind: 'start' | 'end' | 'link' | undefined): FramePeer {
    const isLink = kind === 'link' || kind === undefined
    return { address, peerId: isLink ? (this.#links.get(address)?.link.peerId ?? null) : null }
  }

  unroute(circuitId: string, isNow: boolean): void {
    const circuit = this.#circuits.get(circuitId)
    if (circuit === undefined) return
    if (isNow) {
      this.#remove(circuit)
      return
    }
    if (this.#leaving.has(circuit)) return
    const sinceMs = this.#deps.clock.monotonicMs()
    this.#leaving.set(circuit, {
      sinceMs,
      dueMs: sinceMs + this.#deps.config.xgressCloseCheckInterval,
    })
    this.#scheduleLeaving()
  }

  forget(circuit: CarriedCircuit): void {
    if (!circuit.isRouted && circuit.ends.size === 0 && circuit.dials === 0)
      this.#circuits.remove(circuit)
  }

  open(place: LocalCircuit, application: CircuitApplication): CircuitEndpoint {
    const circuit = this.#circuitFor(place)
    if (typeof circuit === 'string') return closedCircuitEndpoint(place.id, application, circuit)
    const stream: Xgress = new Xgress({
      circuitId: place.id,
      isTerminator: place.isTerminator,
      options: place.options ?? xgressOptions(),
      application,
      clock: this.#deps.clock,
      room: this.#roomOf(circuit),
      transmit: (message, kind) => this.#transmit(circuit, place, stream, message, kind),
      onEnded: () => this.#reportEnded(circuit, place.isTerminator),
      onDelivered: (bytes) =>
        this.usages.count(circuit, `${circuitEndpointSide(place.isTerminator)}.tx`, bytes),
      onClosed: (_reason, endsCircuit) => {
        this.#streams.delete(stream)
        this.#stopTicker()
        this.#left(circuit, place, endsCircuit)
      },
    })
    const destination: FrameDestination = {
      forward: (message) => {
        stream.receive(message)
        return true
      },
      onceWritable: (callback) => this.#deliveries.onceWritable(destination, callback),
      onUnrouted: () => stream.unrouted(),
    }
    const { isTerminator } = place
    circuit.ends.set(place.address, { destination, isStream: true, isTerminator })
    this.#streams.add(stream)
    this.#startTicker()
    stream.start()
    return stream
  }

  /** The buffer budget of an endpoint. Circuits of the same dialing identity share a budget. */
  #roomOf({ id, clientId }: CarriedCircuit): BufferBudget {
    // @guard circuits-that-take-nothing--dialer
    const sharer = clientId === '' ? id : clientId
    return {
      hasRoom: () => this.#buffered.hasRoomFor(sharer),
      take: (bytes) => this.#buffered.take(sharer, bytes),
    }
  }

  attach(place: LocalCircuit, destination: FrameDestination): void {
    const circuit = this.#circuitFor(place)
    if (typeof circuit === 'string') queueMicrotask(() => destination.onUnrouted())
    else {
      const { isTerminator } = place
      circuit.ends.set(place.address, { destination, isStream: false, isTerminator })
    }
  }

  enter({ id, address, isTerminator, sharer = id }: LocalCircuit, message: ChannelMessage): void {
    const circuit = this.#circuits.get(id)
    if (circuit === undefined || readCircuitId(message) !== id) return
    circuit.receivedMs = this.#deps.clock.monotonicMs()
    const from = { address, peerId: null, sharer }
    const fate = this.#forward(circuit, from, message, bytesMaxOf(message.contentType))
    if (fate === 'astray') this.#faults.miss(id, from)
    if (fate !== 'sent') return
    this.#traffic.received(circuitEndpointSide(isTerminator), message)
    this.#use(circuit, `${circuitEndpointSide(isTerminator)}.rx`, message)
  }

  leave(place: LocalCircuit, _reason: string): void {
    const circuit = this.#circuits.get(place.id)
    if (circuit !== undefined) this.#left(circuit, place, true)
  }

  figures(): Readonly<Record<string, number>> {
    let bufferedBytes = 0
    for (const stream of this.#streams) bufferedBytes += stream.bufferedBytes
    return {
      'forwarder.circuits': this.#circuits.size,
      'forwarder.ends': this.#streams.size,
      'forwarder.buffered_bytes': bufferedBytes,
      'forwarder.messages': this.#messages,
      'forwarder.bytes': this.#bytes,
      'forwarder.retransmissions': this.#retransmissions,
      'forwarder.faults': this.#faults.missed,
      'forwarder.usage_lost_bytes': this.usages.lostBytes,
      ...this.#traffic.figures(),
      ...Object.fromEntries(
        Array.from(this.#links, ([id, { dropped }]) => [`link.dropped_msgs:${id}`, dropped]),
      ),
    }
  }

  /** Circuits by ID, for an inspection, and the number of omitted circuits. */
  shown(): { readonly circuits: Readonly<Record<string, object>>; readonly omitted: number } {
    const nowMs = this.#deps.clock.monotonicMs()
    const all = Array.from(this.#circuits.all())
    const shown = all.slice(0, forwardLimits.circuitsShownMax)
    const circuits = Object.fromEntries(
      shown.map((circuit) => [
        circuit.id,
        {
          circuitId: circuit.id,
          ctrlId: circuit.ownerId,
          idleMs: Math.round(nowMs - circuit.activeMs),
          routes: Object.fromEntries(
            Array.from(circuit.hops, ([from, { address }]) => [from, address]),
          ),
          destinations: Object.fromEntries(
            Array.from(circuit.hops.values(), (place) => [
              place.address,
              this.#shownPlace(circuit, place),
            ]),
          ),
        },
      ]),
    )
    return { circuits, omitted: all.length - shown.length }
  }

  #shownPlace(circuit: CarriedCircuit, { address, peerId }: FramePeer): 'link' | 'end' | 'missing' {
    if (peerId === null) return circuit.ends.has(address) ? 'end' : 'missing'
    return this.#links.get(address)?.link.peerId === peerId ? 'link' : 'missing'
  }

  /** @returns the circuit for an endpoint, or why the endpoint is refused. */
  #circuitFor({ id, address, isTerminator }: LocalCircuit): CarriedCircuit | string {
    const circuit = this.#circuits.get(id)
    if (circuit === undefined) return 'the circuit is not routed here'
    if (circuit.ends.has(address)) return 'the circuit has this end already'
    if (circuit.ends.size >= forwardLimits.endsPerCircuitMax) return 'too many ends'
    // The endpoint at a terminator opens before its circuit is routed.
    if (!isTerminator && circuit.next(address, null) === undefined) {
      return 'the circuit is not routed from this end'
    }
    if (!isTerminator && circuit.closedBy !== null) return 'the circuit is closed'
    // The host of an earlier dial attempt may have closed the circuit.
    circuit.closedBy = null
    return circuit
  }

  #transmit(
    circuit: CarriedCircuit,
    { address, id, isTerminator }: LocalCircuit,
    stream: Xgress,
    message: OutboundMessage,
    kind: TransmitKind,
  ): 'sent' | 'full' {
    if (this.#circuits.get(id) !== circuit) return 'sent'
    const from = { address, peerId: null }
    const { contentType, headers = new Map(), body = new Uint8Array() } = message
    const frame = { contentType, sequence: 0, headers, body }
    const isRepeated = kind === 'retransmission'
    if (isRepeated) this.#retransmissions += 1
    const fate = this.#forward(circuit, from, frame, bytesMaxOf(contentType), isRepeated)
    if (fate === 'astray') this.#faults.miss(id, from)
    if (fate === 'sent') this.#traffic.received(circuitEndpointSide(isTerminator), frame)
    // A payload without a next hop is sent again later, but is counted only once.
    if (fate !== 'full' && !isRepeated)
      this.#use(circuit, `${circuitEndpointSide(isTerminator)}.rx`, frame)
    if (fate !== 'full') return 'sent'
    const next = circuit.next(address, null)
    if (next !== undefined) this.#goesTo(circuit, next)?.onceWritable?.(this.#wakerOf(stream))
    return 'full'
  }

  /** Returns the same callback for a stream each time, so that it is registered only once. */
  #wakerOf(stream: Xgress): () => void {
    const known = this.#wakers.get(stream)
    if (known !== undefined) return known
    const waker = (): void => {
      if (this.#streams.has(stream)) stream.onLinkWritable()
    }
    this.#wakers.set(stream, waker)
    return waker
  }

  #goesTo(
    circuit: CarriedCircuit,
    { address, peerId }: FramePeer,
  ): ForwardLink | FrameDestination | undefined {
    return peerId === null ? circuit.ends.get(address)?.destination : this.#links.get(address)?.link
  }

  #forward(
    circuit: CarriedCircuit | undefined,
    from: Sender,
    given: ChannelMessage,
    queuedBytesMax: number,
    isRepeated = false,
  ): Fate {
    const next = circuit?.next(from.address, from.peerId)
    if (circuit === undefined || next === undefined) return 'astray'
    if (!isRepeated) circuit.activeMs = this.#deps.clock.monotonicMs()
    const hops = remainingTraceHops(given)
    if (hops === 1) return this.#answerTrace(circuit, from, given)
    const message = hops === null ? given : withRemainingHops(given, hops - 1)
    if (next.peerId === null) return this.#toEnd(circuit, from, next, message, queuedBytesMax)
    const found = this.#links.get(next.address)
    // @guard circuits-at-a-router--to
    if (found?.link.peerId !== next.peerId) return 'astray'
    if (!found.link.trySend(withoutChannelHeaders(message), queuedBytesMax)) {
      // Counts frames from other routers and retransmissions. An endpoint in this router sends a
      // new payload again later.
      if (from.peerId !== null || isRepeated) found.dropped += 1
      return 'full'
    }
    this.#traffic.sent('fabric', message)
    this.#use(circuit, 'fabric.tx', message)
    this.#count(message)
    return 'sent'
  }

  /** Answers a trace that ends at this router; the answer goes to the source of the request. */
  #answerTrace(circuit: CarriedCircuit, from: Sender, request: ChannelMessage): Fate {
    const answer = routeTraceResponseMessage(request, {
      type: 'forwarder',
      id: this.#deps.routerId,
    })
    const { headers = new Map(), body = new Uint8Array() } = answer ?? {}
    if (answer === null) return 'sent'
    const frame = { contentType: answer.contentType, sequence: 0, headers, body }
    if (from.peerId === null) {
      return this.#toEnd(circuit, from, from, frame, acknowledgementsQueuedBytesMax)
    }
    const link = this.#links.get(from.address)?.link
    if (link?.trySend(frame, acknowledgementsQueuedBytesMax) !== true) return 'full'
    this.#traffic.sent('fabric', frame)
    return 'sent'
  }

  #toEnd(
    circuit: CarriedCircuit,
    { peerId, sharer = circuit.id }: Sender,
    { address }: FramePeer,
    message: ChannelMessage,
    queuedBytesMax: number,
  ): Fate {
    const end = circuit.ends.get(address)
    // Frames in transit may arrive after the endpoint has closed.
    if (end === undefined) return circuit.closedBy === null ? 'astray' : 'sent'
    const { destination, isStream, isTerminator } = end
    const isTaken =
      peerId === null && isStream
        ? this.#deliveries.deliver(sharer, destination, message, queuedBytesMax)
        : destination.forward(message)
    if (!isTaken) return 'full'
    this.#traffic.sent(circuitEndpointSide(isTerminator), message)
    // A stream itself counts the bytes that it delivers, because payloads may arrive twice or late.
    if (!isStream) this.#use(circuit, `${circuitEndpointSide(isTerminator)}.tx`, message)
    this.#count(message)
    return 'sent'
  }

  /** Counts payloads only; other frames are protocol overhead. */
  #use(
    circuit: CarriedCircuit | undefined,
    kind: UsageCounterKind,
    { contentType, body }: ChannelMessage,
  ): void {
    if (circuit === undefined || contentType !== circuitContentType.payload) return
    this.usages.count(circuit, kind, body.length)
  }

  #count({ body }: ChannelMessage): void {
    this.#messages += 1
    this.#bytes += body.length
  }

  #isPassable(circuitId: string, { address, peerId }: FramePeer): boolean {
    const circuit = this.#circuits.get(circuitId)
    const next = circuit?.next(address, peerId)
    if (circuit === undefined || next === undefined) return false
    return this.#shownPlace(circuit, next) !== 'missing'
  }

  /** An endpoint has closed. @param endsCircuit whether to report this to the circuit's owner. */
  #left(
    circuit: CarriedCircuit,
    { address, isTerminator }: LocalCircuit,
    endsCircuit: boolean,
  ): void {
    circuit.ends.delete(address)
    if (endsCircuit) this.#reportEnded(circuit, isTerminator)
  }

  #reportEnded(circuit: CarriedCircuit, isTerminator: boolean): void {
    if (this.#circuits.get(circuit.id) !== circuit || circuit.closedBy !== null) return
    circuit.closedBy = isTerminator ? 'egress' : 'ingress'
    this.#faults.ended(circuit)
  }

  #remove(circuit: CarriedCircuit): void {
    this.#leaving.delete(circuit)
    if (!this.#circuits.remove(circuit)) return
    const ends = Array.from(circuit.ends.values())
    circuit.ends.clear()
    for (const { destination } of ends) destination.onUnrouted()
  }

  #scheduleLeaving(): void {
    const [first] = this.#leaving.values()
    if (this.#leaveTimer !== null || first === undefined) return
    const waitMs = first.dueMs - this.#deps.clock.monotonicMs()
    this.#leaveTimer = setTimeout(() => this.#lookAtLeaving(), Math.max(0, waitMs))
  }

  /** Checks the circuits to remove. All wait equally long, so the first in the map is due first. */
  #lookAtLeaving(): void {
    this.#leaveTimer = null
    const nowMs = this.#deps.clock.monotonicMs()
    const quietMs = this.#deps.config.xgressCloseCheckInterval
    // A circuit that must wait longer moves to the end of the map, so the loop ends before it.
    for (const [circuit, leaving] of this.#leaving) {
      if (leaving.dueMs > nowMs) break
      this.#leaving.delete(circuit)
      const isQuiet = nowMs - circuit.receivedMs >= quietMs
      if (isQuiet || nowMs - leaving.sinceMs >= forwardLimits.leavingMsMax) {
        this.#remove(circuit)
      } else {
        this.#leaving.set(circuit, { ...leaving, dueMs: nowMs + Math.max(1, quietMs) })
      }
    }
    this.#scheduleLeaving()
  }

  #startTicker(): void {
    this.#ticker ??= setInterval(() => {
      const nowMs = this.#deps.clock.monotonicMs()
      for (const stream of Array.from(this.#streams)) stream.tick(nowMs)
    }, ticksEveryMs)
  }

  #stopTicker(): void {
    if (this.#streams.size > 0 || this.#ticker === null) return
    clearInterval(this.#ticker)
    this.#ticker = null
  }
}

/** Acknowledgments may queue more bytes than payloads, so that payloads cannot block them. */
function bytesMaxOf(contentType: number): number {
  return contentType === circuitContentType.payload
    ? payloadsQueuedBytesMax
    : acknowledgementsQueuedBytesMax
}
