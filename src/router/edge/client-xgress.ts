import type { ChannelMessage, OutboundMessage } from '../../channel/frame.ts'
import { encodeInt32 } from '../../channel/headers.ts'
import type {
  FrameDestination,
  LocalCircuit,
  LocalCircuits,
} from '../../overlay/circuits/circuit-endpoint.ts'
import type { ClientFlowControl } from './client-flow-control.ts'
import { edgeHeaderKey, connectionClosedMessage } from '../../channel/messages/edge.ts'
import type { ServiceSession } from './service-session.ts'

export interface ClientXgressDeps {
  readonly id: number
  readonly session: ServiceSession
  readonly circuit: LocalCircuit
  readonly circuits: Pick<LocalCircuits, 'attach' | 'enter' | 'leave'>
  /**
   * Flow control of the client's channel. A frame that cannot be sent is dropped; the circuit
   * endpoints retransmit it.
   */
  readonly flow: Pick<ClientFlowControl, 'trySend' | 'onceWritable'>
  readonly send: (outgoing: OutboundMessage) => void
  readonly onOver: () => void
}

/** A client connection whose circuit endpoint is in the client. */
export class ClientXgress implements FrameDestination {
  readonly #deps: ClientXgressDeps
  #isOver = false

  constructor(deps: ClientXgressDeps) {
    this.#deps = deps
    deps.circuits.attach(deps.circuit, this)
  }

  get session(): ServiceSession {
    return this.#deps.session
  }

  get circuitId(): string {
    return this.#deps.circuit.id
  }

  get isOver(): boolean {
    return this.#isOver
  }

  forward({ contentType, headers, body }: ChannelMessage): boolean {
    if (this.#isOver) return false
    const sentHeaders = new Map(headers).set(edgeHeaderKey.connId, encodeInt32(this.#deps.id))
    return this.#deps.flow.trySend({ contentType, headers: sentHeaders, body })
  }

  onceWritable(callback: () => void): void {
    this.#deps.flow.onceWritable(callback)
  }

  onUnrouted(): void {
    if (this.#isOver) return
    this.#deps.send(connectionClosedMessage(this.#deps.id, { text: 'xgress unrouted' }))
    this.#over()
  }

  /** Forwards a frame that the client sent for its circuit. */
  enter(message: ChannelMessage): void {
    if (!this.#isOver) this.#deps.circuits.enter(this.#deps.circuit, message)
  }

  leave(): void {
    this.abandon('closed by the client')
  }

  close(reason: string): void {
    if (this.#isOver) return
    this.#deps.send(connectionClosedMessage(this.#deps.id, { text: reason }))
    this.abandon(reason)
  }

  abandon(reason: string): void {
    if (this.#isOver) return
    this.#over()
    this.#deps.circuits.leave(this.#deps.circuit, reason)
  }

  #over(): void {
    this.#isOver = true
    this.#deps.onOver()
  }
}
