import type { OutboundMessage } from '../../channel/frame.ts'
import { BoundedQueue } from '../../lib/bounds/bounded-queue.ts'
import type { Clock } from '../../lib/clock.ts'
import { circuitLimits } from './limits.ts'
import {
  type Acknowledgement,
  payloadFlag,
  payloadMessage,
  type PayloadContent,
  PAYLOAD_SEQUENCE_MAX,
} from '../../channel/messages/payload.ts'
import { type OutboundPayload, SendBuffer, payloadTimestamp } from './send-buffer.ts'
import type { XgressOptions } from './xgress-options.ts'

/**
 * Kind of a frame. When the link is full, the frame is dropped. The outbox sends its payload again
 * later, except the payload of `transmitEnd`; an acknowledgment is lost.
 */
export type TransmitKind = 'payload' | 'retransmission' | 'acknowledgement'
export type TransmitFrame = (message: OutboundMessage, kind: TransmitKind) => 'sent' | 'full'

interface PayloadOutboxDeps {
  /** Circuit ID as the bytes that frames contain. */
  readonly circuitId: Uint8Array
  /**
   * Flag in all messages of this circuit endpoint: `fromTerminator` at the terminator, 0 at the
   * other endpoint.
   */
  readonly sideFlag: number
  readonly options: XgressOptions
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly transmit: TransmitFrame
}

const empty = new Uint8Array(0)
/** A payload with one of these flags ends the stream of its sender. */
export const STREAM_END_FLAGS = payloadFlag.endOfFile | payloadFlag.circuitEnd
/** A payload with both of these flags ends a stream whose application has failed. */
export const ABORT_FLAGS = payloadFlag.circuitEnd | payloadFlag.writeFailed

/**
 * Payloads of one circuit endpoint with their sequence numbers, from the application's call until
 * they are acknowledged.
 */
export class PayloadOutbox {
  readonly #deps: PayloadOutboxDeps
  readonly #sent: SendBuffer
  /** Payloads that were never sent. */
  #unsent: BoundedQueue<OutboundPayload> | null = null
  #unsentBytes = 0
  /**
   * Payloads that the protocol itself sends, before those of the application; at most one of each
   * kind.
   */
  #ahead: OutboundPayload[] | null = null
  #nextSequence = 0
  #isLinkFull = false
  #isTransmitting = false
  /**
   * Whether the other endpoint understands the flag that ends a stream without ending the circuit.
   */
  peerCanEndOfFile = false
  /** Time at which the payload with the end flag was sent; Infinity before. */
  sentAllMs = Infinity

  constructor(deps: PayloadOutboxDeps) {
    this.#deps = deps
    this.#sent = new SendBuffer(deps.options)
  }

  get inFlightBytes(): number {
    return this.#sent.inFlightBytes
  }

  get windowBytes(): number {
    return this.#sent.windowBytes
  }

  get bytes(): number {
    return this.#sent.inFlightBytes + this.#unsentBytes
  }

  /** Whether all payloads that were sent are acknowledged. */
  get isAcknowledged(): boolean {
    return this.#sent.isEmpty
  }

  get isEmpty(): boolean {
    return this.#unsent === null && this.#sent.isEmpty
  }

  /** Whether the application may add another payload. */
  get hasRoom(): boolean {
    return (this.#unsent?.length ?? 0) < this.#deps.options.txQueueSize
  }

  get isExhausted(): boolean {
    return this.#nextSequence >= PAYLOAD_SEQUENCE_MAX
  }

  /** @returns false if too much data waits because the application ignores back-pressure. */
  push(flags: number, { body, edgeFlags, traceId }: PayloadContent): boolean {
    this.#unsent ??= new BoundedQueue(circuitLimits.xgressUnsentMax)
    this.#unsentBytes += body.length
    const payload = {
      sequence: -1,
      flags: flags | this.#deps.sideFlag,
      body,
      edgeFlags,
      traceId,
      capabilities: null,
      sentMs: -1,
    }
    const isTaken = this.#unsent.push(payload)
    return isTaken && this.#unsentBytes <= circuitLimits.xgressUnsentBytesMax
  }

  /**
   * Adds a payload that `transmit` sends before all waiting payloads, even if the window is full.
   */
  pushAhead(flags: number, capabilities: number | null): void {
    this.#ahead ??= []
    this.#ahead.push({
      sequence: this.#takeSequence(),
      flags: flags | this.#deps.sideFlag,
      body: empty,
      edgeFlags: 0,
      traceId: null,
      capabilities,
      sentMs: -1,
    })
  }

  acknowledge(acknowledgement: Acknowledgement): void {
    this.#sent.acknowledge(acknowledgement, this.#nowMs())
  }

  onLinkWritable(): void {
    this.#isLinkFull = false
  }

  /** Sends payloads until the window or the link is full. */
  transmit(): void {
    while (this.#ahead !== null) this.#transmitAhead(this.#ahead)
    if (this.#isTransmitting) return
    this.#isTransmitting = true
    while (!this.#isLinkFull && !this.#sent.isBlocked && this.#transmitNext());
    this.#isTransmitting = false
  }

  #transmitAhead(payloads: readonly OutboundPayload[]): void {
    this.#ahead = null
    for (const payload of payloads) {
      this.#sent.add(payload, this.#nowMs())
      if (this.#transmitOne(payload, 'payload') === 'full') this.#sent.makeDue(payload)
    }
  }

  #transmitNext(): boolean {
    const payload = this.#unsent?.peek()
    if (payload === undefined) return false
    if (payload.sequence === -1) this.#number(payload)
    // Added to the payloads in flight before it is sent, because its acknowledgment may arrive in
    // the same call.
    this.#sent.add(payload, this.#nowMs())
    if (this.#transmitOne(payload, 'payload') === 'full') {
      this.#sent.remove(payload)
      this.#isLinkFull = true
      return false
    }
    // A message that arrived in the same call may have closed the send side, which removes all
    // payloads.
    if (this.#unsent === null) return false
    this.#unsent.shift()
    this.#unsentBytes -= payload.body.length
    if ((payload.flags & STREAM_END_FLAGS) !== 0) this.sentAllMs = this.#nowMs()
    return true
  }

  /** Assigns a sequence number to a payload, which keeps it in retransmissions. */
  #number(payload: OutboundPayload): void {
    payload.sequence = this.#takeSequence()
    const isEnd = (payload.flags & payloadFlag.endOfFile) !== 0
    if (isEnd && !this.peerCanEndOfFile) payload.flags ^= STREAM_END_FLAGS
  }

  transmitAgain(): void {
    const nowMs = this.#nowMs()
    for (const payload of this.#sent.due(nowMs)) {
      if (!this.#sent.has(payload)) continue
      payload.flags |= payloadFlag.sentAgain
      if (this.#transmitOne(payload, 'retransmission') === 'full') return
      this.#sent.onSentAgain(payload, nowMs)
    }
  }

  /**
   * Sends the payload that ends the circuit, once; if it is lost, the controller ends the circuit.
   * @param isWhole false if data of the application may be missing.
   */
  transmitEnd(isWhole: boolean): void {
    const flags = (isWhole ? payloadFlag.circuitEnd : ABORT_FLAGS) | this.#deps.sideFlag
    const sequence = this.#takeSequence()
    const end = { sequence, flags, body: empty, edgeFlags: 0, traceId: null, capabilities: null }
    this.#transmitOne(end, 'payload')
  }

  clear(): void {
    this.#unsent = null
    this.#unsentBytes = 0
    this.#ahead = null
    this.#sent.clear()
  }

  /** Releases memory that is not needed while the circuit is idle. */
  rest(): void {
    this.#sent.rest()
    if (this.#unsent?.length === 0) this.#unsent = null
  }

  #takeSequence(): number {
    const sequence = this.#nextSequence
    this.#nextSequence = Math.min(sequence + 1, PAYLOAD_SEQUENCE_MAX)
    return sequence
  }

  #transmitOne(payload: Omit<OutboundPayload, 'sentMs'>, kind: TransmitKind): 'sent' | 'full' {
    const stamp = payloadTimestamp(this.#nowMs())
    return this.#deps.transmit(payloadMessage(this.#deps.circuitId, payload, stamp), kind)
  }

  #nowMs(): number {
    return this.#deps.clock.monotonicMs()
  }
}
