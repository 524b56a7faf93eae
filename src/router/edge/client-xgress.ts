import type { ChannelMessage, Outgoing } from '../../channel/frame.ts'
import { int32Value } from '../../channel/headers.ts'
import type {
  Destination,
  LocalCircuit,
  LocalCircuits,
} from '../../overlay/circuits/circuit-ends.ts'
import type { ClientFlow } from './client-flow.ts'
import { edgeHeader, stateClosed } from '../../channel/messages/edge.ts'
import type { ServiceSession } from './service-session.ts'

export interface ClientXgressParts {
  readonly id: number
  readonly session: ServiceSession
  readonly circuit: LocalCircuit
  readonly circuits: Pick<LocalCircuits, 'attach' | 'enter' | 'leave'>
  /** Frames that do not go out are sent again by the ends. */
  readonly flow: Pick<ClientFlow, 'trySend' | 'onceWritable'>
  readonly send: (outgoing: Outgoing) => void
  readonly onOver: () => void
}

/** A connection of a client that keeps its end of the circuit itself. */
export class ClientXgress implements Destination {
  readonly #parts: ClientXgressParts
  #isOver = false

  constructor(parts: ClientXgressParts) {
    this.#parts = parts
    parts.circuits.attach(parts.circuit, this)
  }

  get session(): ServiceSession {
    return this.#parts.session
  }

  get circuitId(): string {
    return this.#parts.circuit.id
  }

  get isOver(): boolean {
    return this.#isOver
  }

  forward({ contentType, headers, body }: ChannelMessage): boolean {
    if (this.#isOver) return false
    const sentHeaders = new Map(headers).set(edgeHeader.connId, int32Value(this.#parts.id))
    return this.#parts.flow.trySend({ contentType, headers: sentHeaders, body })
  }

  onceWritable(callback: () => void): void {
    this.#parts.flow.onceWritable(callback)
  }

  onUnrouted(): void {
    if (this.#isOver) return
    this.#parts.send(stateClosed(this.#parts.id, { text: 'xgress unrouted' }))
    this.#over()
  }

  /** A frame of the client for its circuit. */
  enter(message: ChannelMessage): void {
    if (!this.#isOver) this.#parts.circuits.enter(this.#parts.circuit, message)
  }

  leave(): void {
    this.abandon('closed by the client')
  }

  close(reason: string): void {
    if (this.#isOver) return
    this.#parts.send(stateClosed(this.#parts.id, { text: reason }))
    this.abandon(reason)
  }

  abandon(reason: string): void {
    if (this.#isOver) return
    this.#over()
    this.#parts.circuits.leave(this.#parts.circuit, reason)
  }

  #over(): void {
    this.#isOver = true
    this.#parts.onOver()
  }
}
