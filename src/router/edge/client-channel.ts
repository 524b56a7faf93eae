import type { Channel } from '../../channel/channel.ts'
import type { ChannelMessage, OutboundMessage } from '../../channel/frame.ts'
import { readText } from '../../channel/headers.ts'
import type { LocalCircuit, LocalCircuits } from '../../overlay/circuits/circuit-endpoint.ts'
import type { XgressOptions } from '../../overlay/circuits/xgress-options.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { edgeLimits } from './limits.ts'
import type { EdgeApiSession } from './edge-api-session.ts'
import type { EdgeClient } from './client-admission.ts'
import { ClientConnection } from './client-connection.ts'
import type { ClientFlowControl } from './client-flow-control.ts'
import { ClientXgress } from './client-xgress.ts'
import type { RouterClientCredentials } from '../../channel/messages/clients.ts'
import {
  CONNECTION_ID_MAX,
  edgeErrorCode,
  edgeContentType,
  INVALID_SESSION_MESSAGE,
  readDataMessage,
  readConnectionId,
  ROUTER_CONNECTION_ID_MIN,
  connectionClosedMessage,
  firstHopTraceResponse,
  traceResponseMessage,
  readTraceRequest,
} from '../../channel/messages/edge.ts'
import { isListedSession, type ServiceSession } from './service-session.ts'
import {
  circuitContentType,
  isFromTerminator,
  payloadHeaderKey,
} from '../../channel/messages/payload.ts'

const { clientConnectionsPerChannelMax } = edgeLimits

/**
 * A client connection in either mode: the endpoint of the circuit is in the router ({@link
 * ClientConnection}) or in the client ({@link ClientXgress}).
 */
export type ClientCircuitEndpoint = ClientConnection | ClientXgress

/** Functions of the router that a channel calls for requests of its client. */
export interface ClientRequestHandlers {
  readonly circuits: LocalCircuits
  connect(client: ClientChannel, message: ChannelMessage, connectionId: number): void
  connectByService(client: ClientChannel, message: ChannelMessage, connectionId: number): void
  bind(client: ClientChannel, message: ChannelMessage, connectionId: number): void
  unbind(client: ClientChannel, message: ChannelMessage, connectionId: number): void
  updateBind(client: ClientChannel, message: ChannelMessage, connectionId: number): void
  onHealth(client: ClientChannel, message: ChannelMessage, connectionId: number): void
  /** Handles a posture report of the client. */
  onPosture(client: ClientChannel, message: ChannelMessage): void
  /** @returns why the token cannot replace the client's current one; null if it can. */
  renewToken(client: ClientChannel, token: string): Promise<string | null>
  /** @returns whether the client hosts a service over this connection. */
  isHosting(client: ClientChannel, connectionId: number): boolean
  /**
   * Reserves one of the connections that the clients of the router share.
   * @returns false if this client may have no further connection.
   */
  takeRoom(client: ClientChannel): boolean
  giveRoomBack(client: ClientChannel): void
}

export interface ClientChannelDeps {
  readonly channel: Channel
  readonly flow: ClientFlowControl
  readonly client: EdgeClient
  /** Aborted when the channel closes. */
  readonly closeSignal: AbortSignal
  readonly services: ClientRequestHandlers
  /** Options of the listener for the circuit endpoints of its clients. */
  readonly options: XgressOptions
  /** Address and port of the client. */
  readonly remoteAddress: string
  readonly localAddress: string
  readonly connectedAtMs: number
}

/**
 * The channel of one client, with its connections by ID. The client or this router assigns the IDs.
 * An ID is valid only on its own channel, so a client cannot reach connections of other clients.
 */
export class ClientChannel {
  readonly channel: Channel
  readonly remoteAddress: string
  readonly localAddress: string
  readonly connectedAtMs: number
  readonly closeSignal: AbortSignal
  readonly #deps: ClientChannelDeps
  readonly #ends = new Map<number, ClientCircuitEndpoint>()
  /**
   * Circuit endpoints in the client, by circuit ID: those of circuits that the client dialed.
   * `#hosted` has those of circuits to services that it hosts.
   */
  readonly #dialed = new Map<string, ClientXgress>()
  readonly #hosted = new Map<string, ClientXgress>()
  #lastRouterId = CONNECTION_ID_MAX
  #client: EdgeClient
  #isRenewing = false

  constructor(deps: ClientChannelDeps) {
    this.#deps = deps
    this.#client = deps.client
    this.channel = deps.channel
    this.closeSignal = deps.closeSignal
    this.remoteAddress = deps.remoteAddress
    this.localAddress = deps.localAddress
    this.connectedAtMs = deps.connectedAtMs
  }

  get client(): EdgeClient {
    return this.#client
  }

  /** @param session the same session with the client's new token. */
  renew(session: EdgeApiSession): void {
    this.#client = { ...this.#client, session }
  }

  get options(): XgressOptions {
    return this.#deps.options
  }

  get connections(): number {
    return this.#ends.size
  }

  /**
   * Credentials for a request of the client: session tokens and certificate fingerprint, which a
   * controller checks.
   */
  claimOf({ token }: ServiceSession): RouterClientCredentials {
    const { session, fingerprint } = this.client
    return { sessionToken: token, apiSessionToken: session.token, fingerprint }
  }

  receive(message: ChannelMessage): void {
    const { contentType, headers, body } = message
    switch (contentType) {
      case circuitContentType.payload:
      case circuitContentType.acknowledgement:
      case circuitContentType.control:
        this.#xgressThatSent(message)?.enter(message)
        return
      case circuitContentType.close: {
        const circuitId = Buffer.from(body).toString('utf8')
        this.#dialed.get(circuitId)?.leave()
        this.#hosted.get(circuitId)?.leave()
        return
      }
      case edgeContentType.postureResponse:
        this.#deps.services.onPosture(this, message)
        return
      case edgeContentType.updateToken:
        void this.#renewToken(message)
        return
      default:
    }
    const id = readConnectionId(headers)
    if (id !== null) this.#receiveOf(id, message)
  }

  /**
   * The endpoint that sent the message. Both endpoints of a circuit are in the same client if it
   * dials a service that it hosts itself.
   */
  #xgressThatSent(message: ChannelMessage): ClientXgress | undefined {
    const circuitId = readText(message.headers, payloadHeaderKey.circuitId) ?? ''
    const [dialed, hosted] = [this.#dialed.get(circuitId), this.#hosted.get(circuitId)]
    if (dialed === undefined || hosted === undefined) return dialed ?? hosted
    const named = this.#ends.get(readConnectionId(message.headers) ?? 0)
    if (named === dialed || named === hosted) return named
    return isFromTerminator(message) ? hosted : dialed
  }

  #receiveOf(id: number, message: ChannelMessage): void {
    const { services } = this.#deps
    switch (message.contentType) {
      case edgeContentType.data: {
        const end = this.#ends.get(id)
        if (end instanceof ClientConnection) end.take(readDataMessage(message))
        return
      }
      case edgeContentType.stateClosed:
        this.#ends.get(id)?.leave()
        return
      case edgeContentType.connect:
        services.connect(this, message, id)
        return
      case edgeContentType.connectV2:
        services.connectByService(this, message, id)
        return
      case edgeContentType.bind:
        services.bind(this, message, id)
        return
      case edgeContentType.unbind:
        services.unbind(this, message, id)
        return
      case edgeContentType.updateBind:
        services.updateBind(this, message, id)
        return
      case edgeContentType.healthEvent:
        services.onHealth(this, message, id)
        return
      case edgeContentType.traceRoute:
        this.#answerTrace(id, message)
        return
      default:
    }
  }

  send(outgoing: OutboundMessage): void {
    this.channel.send(outgoing)
  }

  refuse(message: ChannelMessage, connectionId: number, text: string, code?: number): void {
    const reason = code === undefined ? { text } : { text, code }
    this.channel.reply(message, connectionClosedMessage(connectionId, reason))
  }

  /** Why the client must not use this connection ID; null if it may. */
  faultOfId(id: number): string | null {
    if (id >= ROUTER_CONNECTION_ID_MIN) return 'connection ids of this size are given by the router'
    const isTaken = this.#ends.has(id) || this.#deps.services.isHosting(this, id)
    return isTaken ? 'the connection id is in use' : null
  }

  /** An unused connection ID; null if all IDs are in use. */
  nextRouterId(): number | null {
    for (let tries = 0; tries <= this.#ends.size; tries += 1) {
      const isLast = this.#lastRouterId >= CONNECTION_ID_MAX
      this.#lastRouterId = isLast ? ROUTER_CONNECTION_ID_MIN : this.#lastRouterId + 1
      if (!this.#ends.has(this.#lastRouterId)) return this.#lastRouterId
    }
    return null
  }

  /**
   * @param request the client's request that waits for the circuit; absent if the circuit exists
   * already.
   * @returns null if the limit of connections is reached.
   */
  addConnection(
    id: number,
    session: ServiceSession,
    request?: ChannelMessage,
  ): ClientConnection | null {
    if (!this.#takeRoom()) return null
    const refuse = (to: ChannelMessage) => (): void =>
      // Called only if the client sent the request: otherwise no response is expected.
      this.refuse(to, id, INVALID_SESSION_MESSAGE, edgeErrorCode.invalidSession)
    const connection: ClientConnection = new ClientConnection({
      id,
      session,
      flow: this.#deps.flow,
      send: (outgoing) => this.send(outgoing),
      ...(request === undefined ? {} : { refuse: refuse(request) }),
      onOver: () => this.#remove(id, connection),
    })
    this.#ends.set(id, connection)
    return connection
  }

  /**
   * Adds a connection whose circuit endpoint is in the client.
   * @returns null if the limit of connections is reached, or the client already has this endpoint.
   */
  addXgress(id: number, session: ServiceSession, circuit: LocalCircuit): ClientXgress | null {
    const xgresses = circuit.isTerminator ? this.#hosted : this.#dialed
    if (xgresses.has(circuit.id) || !this.#takeRoom()) return null
    const xgress: ClientXgress = new ClientXgress({
      id,
      session,
      circuit: { ...circuit, sharer: this.client.session.identityId },
      circuits: this.#deps.services.circuits,
      flow: this.#deps.flow,
      send: (outgoing) => this.send(outgoing),
      onOver: () => {
        xgresses.delete(circuit.id)
        this.#remove(id, xgress)
      },
    })
    this.#ends.set(id, xgress)
    xgresses.set(circuit.id, xgress)
    return xgress
  }

  /** Closes connections whose service sessions have ended. */
  endSessions(tokens: ReadonlySet<string>, ids: ReadonlySet<string>): void {
    for (const end of Array.from(this.#ends.values())) {
      // @guard client-of-a-removed-session--circuit
      if (isListedSession(end.session, tokens, ids)) end.close('the session has ended')
    }
  }

  /** Tokens of the service sessions that the client's connections use. */
  *sessionTokens(): Generator<string> {
    for (const { session } of this.#ends.values()) if (session.token !== '') yield session.token
  }

  /** Called when the channel has closed. */
  onClosed(reason: string): void {
    for (const end of Array.from(this.#ends.values())) end.abandon(reason)
  }

  #takeRoom(): boolean {
    if (this.#ends.size >= clientConnectionsPerChannelMax) return false
    return this.#deps.services.takeRoom(this)
  }

  #remove(id: number, end: ClientCircuitEndpoint): void {
    if (this.#ends.get(id) !== end) return
    this.#ends.delete(id)
    this.#deps.services.giveRoomBack(this)
  }

  #answerTrace(id: number, message: ChannelMessage): void {
    const request = readTraceRequest(message)
    const end = this.#ends.get(id)
    // If the circuit endpoint is in the client, the trace ends at this router, because the client
    // itself sends the control messages of the circuit.
    const canPass = request.hops > 1 && end instanceof ClientConnection
    if (canPass && end.trace({ ...request, hops: request.hops - 1 })) return
    const error = request.hops > 1 ? 'the connection has no route that can be traced' : ''
    this.channel.reply(message, traceResponseMessage(id, firstHopTraceResponse(request, error)))
  }

  /**
   * Renews the client's token, or closes the channel if the new token is refused. A token is also
   * refused while the router verifies an earlier one.
   */
  async #renewToken(message: ChannelMessage): Promise<void> {
    const token = Buffer.from(message.body).toString('utf8')
    const isTwice = this.#isRenewing
    this.#isRenewing = true
    const fault = isTwice
      ? 'another token of this connection is judged'
      : await this.#deps.services.renewToken(this, token).catch(errorMessage)
    this.#isRenewing = false
    if (fault === null) {
      this.channel.reply(message, { contentType: edgeContentType.updateTokenSuccess })
      return
    }
    const { headers, body } = connectionClosedMessage(0, {
      text: fault,
      code: edgeErrorCode.invalidApiSessionType,
    })
    const contentType = edgeContentType.updateTokenFailure
    this.channel.reply(message, {
      contentType,
      ...(headers === undefined ? {} : { headers }),
      ...(body === undefined ? {} : { body }),
    })
    this.channel.close('the client cannot renew its token')
  }
}
