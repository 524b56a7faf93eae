import { BoundedQueue } from '../../lib/bounds/bounded-queue.ts'
import type { OutboundMessage } from '../../channel/frame.ts'
import type {
  CircuitApplication,
  CircuitEndpoint,
} from '../../overlay/circuits/circuit-endpoint.ts'
import type { TraceResponse, TraceRequest } from '../../channel/messages/route-trace.ts'
import { edgeLimits } from './limits.ts'
import type { ClientFlowControl } from './client-flow-control.ts'
import {
  dataMessage,
  edgeFlag,
  connectionClosedMessage,
  traceResponseMessage,
} from '../../channel/messages/edge.ts'
import type { ServiceSession } from './service-session.ts'
import type { PayloadContent } from '../../channel/messages/payload.ts'

export interface ClientConnectionDeps {
  readonly id: number
  readonly session: ServiceSession
  readonly flow: Pick<ClientFlowControl, 'trySend' | 'onceWritable' | 'addQueued'>
  /** Sends a message that contains no data. */
  readonly send: (outgoing: OutboundMessage) => void
  /**
   * Refuses the client's request if its session ends before the connection has a circuit. Absent if
   * the connection has had a circuit from the beginning.
   */
  readonly refuse?: () => void
  /** Called when the connection has ended, so that its ID can be reused. */
  readonly onOver: () => void
}

/**
 * A client connection whose circuit endpoint is in this router. It forwards messages with their
 * boundaries unchanged, because client and host encrypt each message end to end.
 */
export class ClientConnection implements CircuitApplication {
  readonly #deps: ClientConnectionDeps
  #end: CircuitEndpoint | null = null
  /** Data messages from the client that the circuit cannot accept yet. */
  readonly #queue = new BoundedQueue<PayloadContent>(Infinity)
  #takesMore = true
  #isFlushing = false
  /**
   * Request numbers of the client's trace requests that were forwarded and have no response yet.
   */
  readonly #traced = new Set<number>()
  /** Data messages from the circuit that wait until the client reads. */
  #held: PayloadContent[] = []
  #isFinDelivered = false
  /**
   * Why the circuit has ended; null while it is open. The client gets the reason after all data of
   * the circuit.
   */
  #closedReason: string | null = null
  #isOver = false
  /**
   * True if the client has closed the connection; the circuit ends when all queued data has been
   * sent.
   */
  #isLeaving = false

  constructor(deps: ClientConnectionDeps) {
    this.#deps = deps
  }

  get session(): ServiceSession {
    return this.#deps.session
  }

  get circuitId(): string {
    return this.#end?.circuitId ?? ''
  }

  /** True once the connection has ended for any reason. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** @param open creates the circuit endpoint; this connection is its application. */
  start(open: (application: CircuitApplication) => CircuitEndpoint): void {
    this.#end = open(this)
    this.#flushQueue()
  }

  /** Accepts a data message from the client. */
  take(piece: PayloadContent): void {
    // Drops data for a circuit that has ended. If it were queued and the client wrote without
    // reading, it would block all other messages of the client, and the client would never read why
    // the circuit ended.
    if (this.#isLeaving || this.#isOver || this.#closedReason !== null) return
    this.#deps.flow.addQueued(roomOf(piece))
    this.#queue.push(piece)
    this.#flushQueue()
  }

  /**
   * Called when the client has closed the connection; data that it wrote before is still delivered.
   */
  leave(): void {
    if (this.#isOver) return
    this.#isLeaving = true
    this.#over()
    this.#endWhenSent()
  }

  /** Ends the connection immediately and reports the end to the client. */
  close(reason: string): void {
    if (this.#isOver) return
    const { id, send, refuse } = this.#deps
    if (this.#end === null && refuse !== undefined) refuse()
    else send(connectionClosedMessage(id, { text: reason }))
    this.abandon(reason)
  }

  /** Ends the connection immediately, without a message to the client. */
  abandon(reason: string): void {
    this.#over()
    this.#dropQueue()
    this.#end?.abort(reason)
  }

  /** @returns false if no response will come. */
  trace(request: TraceRequest): boolean {
    if (this.#isOver || this.#end?.trace === undefined || this.#end.isClosed) return false
    const [oldest] = this.#traced
    const isFull = this.#traced.size >= edgeLimits.clientTracesMax
    if (isFull && oldest !== undefined) this.#traced.delete(oldest)
    this.#traced.add(request.userValue)
    this.#end.trace(request)
    return true
  }

  /**
   * Forwards the response only if it belongs to a trace request of this connection. The other end
   * of the circuit chooses the request number in the response, and could otherwise answer other
   * requests of the client.
   */
  onTraced(answer: TraceResponse): void {
    // @guard answers-to-a-trace
    if (this.#isOver || !this.#traced.delete(answer.userValue)) return
    this.#deps.flow.trySend(traceResponseMessage(this.#deps.id, answer))
  }

  deliver(piece: PayloadContent): boolean {
    if (this.#isOver) return true
    if ((piece.edgeFlags & edgeFlag.fin) !== 0) this.#isFinDelivered = true
    if (this.#held.length === 0 && this.#sendData(piece)) return true
    this.#held.push(piece)
    this.#deps.flow.onceWritable(this.#onClientReads)
    return false
  }

  onFinished(): void {
    // The other endpoint has closed the circuit without a FIN. This connection sends the FIN,
    // because the client would otherwise wait for more data.
    if (this.#isFinDelivered) return
    this.deliver({ body: new Uint8Array(), edgeFlags: edgeFlag.fin, traceId: null })
  }

  onWritable(): void {
    this.#takesMore = true
    this.#flushQueue()
  }

  onClosed(reason: string): void {
    this.#dropQueue()
    this.#closedReason = reason
    if (this.#held.length === 0) this.#sendClosed()
  }

  readonly #onClientReads = (): void => {
    if (this.#isOver) return
    const [first] = this.#held
    if (first !== undefined && this.#sendData(first)) this.#held.shift()
    if (this.#held.length > 0) this.#deps.flow.onceWritable(this.#onClientReads)
    else if (this.#closedReason !== null) this.#sendClosed()
    else this.#end?.resume()
  }

  #sendData(piece: PayloadContent): boolean {
    return this.#deps.flow.trySend(dataMessage(this.#deps.id, piece))
  }

  /**
   * Sends queued messages while the circuit accepts them. If the circuit requests more data before
   * `send` returns, the nested call does nothing.
   */
  #flushQueue(): void {
    const end = this.#end
    if (end === null || this.#isFlushing) return
    this.#isFlushing = true
    while (this.#takesMore) {
      const piece = this.#queue.shift()
      if (piece === undefined) break
      this.#takesMore = false
      const takesMore = end.send(piece)
      this.#takesMore ||= takesMore
      this.#deps.flow.addQueued(-roomOf(piece))
    }
    this.#isFlushing = false
    this.#endWhenSent()
  }

  #endWhenSent(): void {
    if (this.#isLeaving && this.#queue.length === 0) this.#end?.close('closed by the client')
  }

  #dropQueue(): void {
    const room = this.#queue.drain().reduce((sum, piece) => sum + roomOf(piece), 0)
    if (room > 0) this.#deps.flow.addQueued(-room)
  }

  #sendClosed(): void {
    if (this.#isOver) return
    this.#deps.send(connectionClosedMessage(this.#deps.id, { text: this.#closedReason ?? '' }))
    this.#over()
  }

  #over(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#held = []
    this.#deps.onOver()
  }
}

/** Bytes that count for a data message, including the memory that even an empty message takes. */
function roomOf({ body }: PayloadContent): number {
  return body.length + PIECE_ROOM
}

const PIECE_ROOM = 128
