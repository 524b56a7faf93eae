import type { Channel } from '../channel/channel.ts'
import type { ChannelMessage, OutboundMessage } from '../channel/frame.ts'
import {
  encodeFlag,
  encodeInt32,
  readFlag,
  readInt32,
  readText,
  encodeText,
} from '../channel/headers.ts'
import {
  connectionMessage,
  connectionTypeCode,
  edgeHeaderKey,
  edgeContentType,
  readConnectionId,
} from '../channel/messages/edge.ts'
import { circuitContentType, isFromTerminator, readCircuitId } from '../channel/messages/payload.ts'
import type { CircuitData } from '../overlay/circuits/circuit-source.ts'
import {
  type CircuitEnd,
  circuitEndKey,
  type EdgeCircuitLink,
  type EdgeCircuits,
} from './edge-circuits.ts'
import { tunnelLimits } from './limits.ts'
import { sharedPeerDataKeys } from '../channel/messages/peer-data.ts'

interface EdgeChannelDeps {
  readonly channel: Channel
  readonly routerName: string
  readonly circuits: EdgeCircuits
}

/** A circuit that an edge router has created and that this process has not opened yet. */
interface MadeCircuit {
  readonly id: string
  readonly address: string
  readonly controllerId: string
  readonly peerData: ReadonlyMap<number, Uint8Array>
}

/**
 * A client's dial to a service that this process hosts. The circuit is reserved until the host
 * accepts or refuses.
 */
export interface IncomingDial extends MadeCircuit {
  /** The identity that dials; '' if the edge router does not report it. */
  readonly dialerId: string
}

/** Callbacks for one service that is hosted at one edge router. */
interface BindEvents {
  /**
   * @returns peer data for the client.
   * @throws {Error} with a message that is sent to the client.
   */
  readonly onDial: (dial: IncomingDial) => Promise<ReadonlyMap<number, Uint8Array>>
  readonly onEstablished: () => void
  /** Called when the edge router no longer hosts the service. */
  readonly onClosed: (reason: string) => void
}

/** The edge router refused a request. */
export class EdgeRefusal extends Error {
  readonly code: number | null

  constructor(text: string, code: number | null) {
    super(text)
    this.code = code
  }
}

interface Bound extends BindEvents {
  readonly token: string
}

/** Maximum connection ID that this client assigns; the edge router assigns IDs above it. */
const OWN_ID_MAX = 0x7f_ff_ff_ff
const { circuitsPerRouterMax, dialsOfRouterMax, reasonCharactersMax } = tunnelLimits

/**
 * This client's side of the channel to one edge router: the connections that it dialed, the
 * services that it hosts there, and the circuits with an endpoint in this process.
 */
export class EdgeChannel {
  readonly routerName: string
  readonly channel: Channel
  readonly #circuits: EdgeCircuits
  readonly #binds = new Map<number, Bound>()
  readonly #connections = new Map<number, CircuitEnd>()
  /**
   * Keys of the circuit endpoints that use this edge router. The edge router cannot affect
   * endpoints of other circuits.
   */
  readonly #carried = new Set<string>()
  #lastId = 0
  #dials = 0

  constructor({ channel, routerName, circuits }: EdgeChannelDeps) {
    this.channel = channel
    this.routerName = routerName
    this.#circuits = circuits
  }

  get isOpen(): boolean {
    return !this.channel.isClosed
  }

  /**
   * Requests a circuit to a service and reserves it; the caller must open the circuit next.
   * @param token token of a service session.
   * @throws {EdgeRefusal | Error}
   */
  async connect(
    { token, sharer }: { readonly token: string; readonly sharer: string },
    circuitData: Pick<CircuitData, 'instanceId' | 'peerData'>,
    timeoutMs: number,
  ): Promise<MadeCircuit> {
    if (this.#connections.size >= circuitsPerRouterMax) throw new Error('too many circuits')
    const id = this.#takeId()
    const { instanceId, peerData } = circuitData
    const asked = connectionMessage(
      edgeContentType.connect,
      id,
      [
        ...peerData,
        ...(instanceId === ''
          ? []
          : [[edgeHeaderKey.terminatorIdentity, encodeText(instanceId)] as const]),
        [edgeHeaderKey.useXgressToSdk, encodeFlag(true)],
      ],
      encodeText(token),
    )
    const answer = await this.channel.request(asked, timeoutMs)
    if (answer.contentType !== edgeContentType.stateConnected) throw refusalIn(answer)
    const made = circuitIn(answer.headers)
    if (made === null || !this.#reserve(id, { id: made.id, isTerminator: false }, sharer)) {
      this.#close(id, null)
      throw new Error('the edge router does not leave the ends of circuits to its clients')
    }
    const key = answer.headers.get(edgeHeaderKey.publicKey)
    const pairs = key === undefined ? [] : [[edgeHeaderKey.publicKey, key] as const]
    return { ...made, peerData: new Map(pairs) }
  }

  /**
   * Hosts a service.
   * @param headers headers with the properties of the terminator.
   * @returns the id of the connection.
   * @throws {EdgeRefusal | Error}
   */
  async bind(
    token: string,
    headers: readonly (readonly [number, Uint8Array])[],
    events: BindEvents,
  ): Promise<number> {
    const id = this.#takeId()
    const asked = connectionMessage(
      edgeContentType.bind,
      id,
      [
        ...headers,
        [edgeHeaderKey.routerProvidedConnId, encodeFlag(true)],
        [edgeHeaderKey.supportsInspect, encodeFlag(true)],
        [edgeHeaderKey.supportsBindSuccess, encodeFlag(true)],
        [edgeHeaderKey.useXgressToSdk, encodeFlag(true)],
      ],
      encodeText(token),
    )
    // Registers the service before the response arrives, because the first client may dial earlier.
    this.#binds.set(id, { ...events, token })
    try {
      const answer = await this.channel.request(asked, tunnelLimits.bindMs)
      if (answer.contentType !== edgeContentType.stateConnected) throw refusalIn(answer)
      return id
    } catch (error) {
      this.unbind(id)
      throw error
    }
  }

  unbind(id: number): void {
    const bound = this.#binds.get(id)
    if (!this.#binds.delete(id) || bound === undefined) return
    this.channel.send(connectionMessage(edgeContentType.unbind, id, [], encodeText(bound.token)))
  }

  /** Changes the cost or precedence of a hosted service, or reports the health of its target. */
  sendForBind(
    contentType: number,
    id: number,
    headers: readonly (readonly [number, Uint8Array])[],
  ): void {
    const bound = this.#binds.get(id)
    if (bound === undefined) return
    this.channel.send(connectionMessage(contentType, id, headers, encodeText(bound.token)))
  }

  receive(message: ChannelMessage): void {
    switch (message.contentType) {
      case circuitContentType.payload:
      case circuitContentType.acknowledgement:
      case circuitContentType.control: {
        const end = this.#endFor(message)
        // @guard edge-router-of-a-tunnel--circuit
        if (!this.#carried.has(circuitEndKey(end))) return
        this.#circuits.receive(end, message)
        return
      }
      case circuitContentType.close: {
        const circuitId = Buffer.from(message.body).toString('utf8')
        for (const isTerminator of [false, true]) this.#unrouted({ id: circuitId, isTerminator })
        return
      }
      default:
    }
    const id = readConnectionId(message.headers)
    if (id !== null) this.#receiveOf(id, message)
  }

  /** Must be called when the channel has closed. */
  onClosed(reason: string): void {
    for (const end of Array.from(this.#connections.values())) this.#unrouted(end)
    const bounds = Array.from(this.#binds.values())
    this.#binds.clear()
    for (const { onClosed } of bounds) onClosed(reason)
  }

  /** The circuit endpoint for which the edge router sent a frame. */
  #endFor(message: ChannelMessage): CircuitEnd {
    const circuitId = readCircuitId(message) ?? ''
    const named = this.#connections.get(readConnectionId(message.headers) ?? 0)
    if (named?.id === circuitId) return named
    return { id: circuitId, isTerminator: !isFromTerminator(message) }
  }

  #receiveOf(id: number, message: ChannelMessage): void {
    switch (message.contentType) {
      case edgeContentType.stateClosed:
        this.#onStateClosed(id, message)
        return
      case edgeContentType.stateConnected:
        // The response to a connect or bind request arrived after the request timed out. Nothing
        // uses the connection or its circuit, so both are closed.
        this.#close(id, readText(message.headers, edgeHeaderKey.circuitId))
        return
      case edgeContentType.bindSuccess:
        this.#binds.get(id)?.onEstablished()
        return
      case edgeContentType.dial:
        void this.#onDial(id, message)
        return
      case edgeContentType.connInspect:
        this.#answerInspection(id, message)
        return
      default:
    }
  }

  #onStateClosed(id: number, message: ChannelMessage): void {
    const end = this.#connections.get(id)
    if (end !== undefined) this.#unrouted(end)
    const bound = this.#binds.get(id)
    if (bound === undefined) return
    this.#binds.delete(id)
    bound.onClosed(refusalIn(message).message)
  }

  async #onDial(bindId: number, message: ChannelMessage): Promise<void> {
    const fail = (reason: string): void => {
      const text = encodeText(reason.slice(0, reasonCharactersMax))
      this.channel.reply(message, connectionMessage(edgeContentType.dialFailed, bindId, [], text))
    }
    const { headers } = message
    const bound = this.#binds.get(bindId)
    const made = circuitIn(headers)
    const id = readInt32(headers, edgeHeaderKey.routerProvidedConnId)
    // @guard edge-router-of-a-tunnel--session
    if (bound === undefined || Buffer.from(message.body).toString('utf8') !== bound.token) {
      fail('the service is not hosted here')
      return
    }
    if (made === null || id === null) {
      fail('the host keeps the ends of its circuits itself')
      return
    }
    if (this.#dials >= dialsOfRouterMax || this.#connections.size >= circuitsPerRouterMax) {
      fail('too many connections')
      return
    }
    const dialerId = readText(headers, edgeHeaderKey.dialerIdentityId) ?? ''
    const end = { id: made.id, isTerminator: true }
    if (!this.#reserve(id >>> 0, end, `by ${dialerId}`)) {
      fail('the circuit or its connection is there already')
      return
    }
    this.#dials += 1
    try {
      const peerData = new Map<number, Uint8Array>()
      for (const key of sharedPeerDataKeys) {
        const value = headers.get(key)
        if (value !== undefined) peerData.set(key, value)
      }
      const answer = await bound.onDial({ ...made, dialerId, peerData })
      const key = answer.get(edgeHeaderKey.publicKey)
      const more = key === undefined ? [] : [[edgeHeaderKey.publicKey, key] as const]
      const body = encodeInt32(id)
      this.channel.reply(
        message,
        connectionMessage(edgeContentType.dialSuccess, bindId, more, body),
      )
    } catch (error) {
      this.#circuits.abandon(end)
      fail(error instanceof Error ? error.message : String(error))
    } finally {
      this.#dials -= 1
    }
  }

  #answerInspection(id: number, message: ChannelMessage): void {
    const type = this.#binds.has(id)
      ? connectionTypeCode.bind
      : this.#connections.has(id)
        ? connectionTypeCode.dial
        : 0
    const shown = [[edgeHeaderKey.connType, Uint8Array.of(type)] as const]
    this.channel.reply(message, connectionMessage(edgeContentType.connInspectResponse, id, shown))
  }

  #reserve(id: number, end: CircuitEnd, sharer: string): boolean {
    if (this.#connections.has(id) || this.#binds.has(id)) return false
    const idValue = encodeInt32(id)
    const path: EdgeCircuitLink = {
      sharer,
      transmit: ({ contentType, headers, body }: OutboundMessage, queuedBytesMax) => {
        const all = new Map(headers).set(edgeHeaderKey.connId, idValue)
        const outgoing = { contentType, headers: all, ...(body === undefined ? {} : { body }) }
        // Returns true for a closed channel, as if the frame was sent: the frame is lost, but the
        // closing of the channel also ends the circuit.
        return this.channel.isClosed || this.channel.trySend(outgoing, queuedBytesMax)
      },
      onceWritable: (callback) => this.channel.onceWritable(callback),
      onClosed: (endsCircuit) => {
        this.#connections.delete(id)
        this.#carried.delete(circuitEndKey(end))
        if (endsCircuit) this.#close(id, end.id)
      },
    }
    if (!this.#circuits.reserve(end, path)) return false
    this.#connections.set(id, end)
    this.#carried.add(circuitEndKey(end))
    return true
  }

  /** Closes a connection, and ends its circuit unless `circuitId` is null. */
  #close(id: number, circuitId: string | null): void {
    if (circuitId !== null) {
      const body = encodeText(circuitId)
      this.channel.send(connectionMessage(circuitContentType.close, id, [], body))
    }
    this.channel.send(connectionMessage(edgeContentType.stateClosed, id))
  }

  #unrouted(end: CircuitEnd): void {
    // @guard edge-router-of-a-tunnel--ended
    if (this.#carried.has(circuitEndKey(end))) this.#circuits.unrouted(end)
  }

  #takeId(): number {
    do this.#lastId = this.#lastId >= OWN_ID_MAX ? 1 : this.#lastId + 1
    while (this.#connections.has(this.#lastId) || this.#binds.has(this.#lastId))
    return this.#lastId
  }
}

/**
 * The circuit that the headers describe. Null if they contain no circuit, or if the edge router
 * itself is the circuit's endpoint.
 */
function circuitIn(headers: ChannelMessage['headers']): Omit<MadeCircuit, 'peerData'> | null {
  const id = readText(headers, edgeHeaderKey.circuitId) ?? ''
  if (id === '' || !readFlag(headers, edgeHeaderKey.useXgressToSdk)) return null
  const address = readText(headers, edgeHeaderKey.xgressAddress) ?? ''
  return { id, address, controllerId: readText(headers, edgeHeaderKey.xgressCtrlId) ?? '' }
}

function refusalIn({ contentType, headers, body }: ChannelMessage): EdgeRefusal {
  const text = Buffer.from(body)
    .toString('utf8')
    .replaceAll(/[^\x20-\x7e]+/g, ' ')
  const reason = text.slice(0, reasonCharactersMax) || `answered by a message ${contentType}`
  return new EdgeRefusal(reason, readInt32(headers, edgeHeaderKey.errorCode))
}
