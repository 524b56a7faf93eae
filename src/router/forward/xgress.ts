import type { Outgoing } from '../../channel/channel.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import { textValue } from '../../channel/headers.ts'
import type { Clock } from '../../lib/clock.ts'
import { BoundedQueue } from '../../lib/bounds/bounded-queue.ts'
import { routerProgramLimits } from '../limits.ts'
import { ChunkJoiner, cutBody } from './chunks.ts'
import type { Application, CircuitEnd, Piece } from './circuit-ends.ts'
import {
  acknowledgementMessage,
  CAN_END_OF_FILE,
  circuitMessage,
  isContent,
  keptBody,
  type Payload,
  payloadFlag,
  payloadMessage,
  readAcknowledgement,
  readPayload,
  SEQUENCE_MAX,
  traceRouteAnswer,
} from './payload.ts'
import { ReceiveBuffer } from './receive-buffer.ts'
import { type OutboundPayload, SendBuffer, stampAt } from './send-buffer.ts'
import type { XgressOptions } from './xgress-options.ts'

/**
 * A payload that is sent for the first time and meets a full link is kept; all else is dropped
 * there.
 */
export type TransmitKind = 'payload' | 'retransmission' | 'acknowledgement'

export interface XgressParts {
  readonly circuitId: string
  readonly isTerminator: boolean
  readonly options: XgressOptions
  readonly application: Application
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly transmit: (message: Outgoing, kind: TransmitKind) => 'sent' | 'full'
  /**
   * Called once, last: the end is to be forgotten.
   * @param endsCircuit false: the circuit was taken from this router already.
   */
  readonly onClosed: (reason: string, endsCircuit: boolean) => void
  /** Name of this end in answers to requests for the route of a circuit. */
  readonly traced?: { readonly type: string; readonly id: string }
  /** Chooses the payloads that the option randomDrops drops; in [0, 1). */
  readonly random?: () => number
}

/** Trailing acknowledgements, and the application of the other end, have so long. */
const LINGER_MS = 5000
/** Once this many bytes were said to wait here, the sender hears when half of them are gone. */
const BUFFERED_SAID_MIN = 10_000
/** Between two answers to payloads that find no room. */
const DROPPED_ANSWERED_EVERY_MS = 1000

const empty = new Uint8Array(0)
/** Either one ends the stream of its sender. */
const ENDS = payloadFlag.endOfFile | payloadFlag.circuitEnd

type SendHalf = 'open' | 'finishing' | 'closed'
type ReceiveHalf = 'open' | 'discarding' | 'ended'

/**
 * One end of a circuit: a stream in pieces, reliable over links that lose, repeat and reorder. It
 * has no timer and no socket. Whatever is called only changes the state; all that follows is done
 * by one loop, so that two ends and their applications may call each other without recursion.
 */
export class Xgress implements CircuitEnd {
  readonly #parts: XgressParts
  readonly #circuitId: Uint8Array
  readonly #sideFlag: number
  readonly #openedMs: number
  readonly #sent: SendBuffer
  readonly #received: ReceiveBuffer
  /** Not sent for the first time yet. */
  #unsent: BoundedQueue<OutboundPayload> | null = null
  #unsentBytes = 0
  #nextSequence = 0
  /** Nothing is sent before the start of the circuit. */
  #isStarted = false
  #sendHalf: SendHalf = 'open'
  #receiveHalf: ReceiveHalf = 'open'
  #chunks: ChunkJoiner | null = null
  /** Sequences to be acknowledged, with the stamp of the last of them. */
  #taken: number[] = []
  #takenStamp = 0
  #bufferedSaid = 0
  #isUpdateDue = false
  #droppedAnsweredMs = -Infinity
  #peerCanEndOfFile = false
  #hasEnded = false
  #isPaused = false
  #isLinkFull = false
  #wantsWritable = false
  #isApplicationGone = false
  #isUnrouted = false
  #isOver = false
  #reason = ''
  #finishCalledMs = Infinity
  /** The last payload is on its way since then. */
  #finishedMs = Infinity
  /** Last sign that the other end takes what is sent, or the application what has come. */
  #progressMs: number
  #isTransmitting = false
  #isRunning = false
  #isDirty = false

  constructor(parts: XgressParts) {
    const { circuitId, isTerminator, options, clock } = parts
    this.#parts = parts
    this.#circuitId = textValue(circuitId)
    this.#sideFlag = isTerminator ? payloadFlag.fromTerminator : 0
    this.#openedMs = clock.monotonicMs()
    this.#progressMs = this.#openedMs
    this.#sent = new SendBuffer(options)
    this.#received = new ReceiveBuffer(options.rxBufferSize)
  }

  get circuitId(): string {
    return this.#parts.circuitId
  }

  /** For its application: what was sent may still be on its way. */
  get isClosed(): boolean {
    return this.#isApplicationGone
  }

  /** Bytes that wait here, in either direction. */
  get bufferedBytes(): number {
    const joined = this.#chunks?.bytes ?? 0
    return this.#received.bytes + joined + this.#sent.inFlightBytes + this.#unsentBytes
  }

  get windowBytes(): number {
    return this.#sent.windowBytes
  }

  /** Sends the first payload of the circuit, at the end that asked for it. */
  start(): void {
    if (this.#parts.isTerminator || this.#isStarted || this.#isOver) return
    this.#isStarted = true
    this.#sendAhead(payloadFlag.circuitStart, CAN_END_OF_FILE)
    this.#run()
  }

  /** @param message payload, acknowledgement or control of this circuit. */
  receive(message: ChannelMessage): void {
    if (this.#isOver || this.#isUnrouted) return
    if (message.contentType === circuitMessage.payload) {
      const payload = readPayload(message)
      if (payload !== null) this.#onPayload(payload)
    } else if (message.contentType === circuitMessage.acknowledgement) {
      this.#onAcknowledgement(message)
    } else if (message.contentType === circuitMessage.control) {
      const traced = this.#parts.traced ?? { type: 'xgress', id: '' }
      const answer = traceRouteAnswer(message, traced)
      if (answer !== null) this.#parts.transmit(answer, 'acknowledgement')
    }
    this.#run()
  }

  /** @param nowMs of the monotonic clock. */
  tick(nowMs: number): void {
    if (this.#isOver) return
    this.#isLinkFull = false
    const { circuitStartTimeout } = this.#parts.options
    if (!this.#isStarted && nowMs - this.#openedMs >= circuitStartTimeout) {
      this.end(`no start of the circuit within ${circuitStartTimeout} ms`)
      return
    }
    this.#sent.rest()
    this.#received.rest()
    if (this.#unsent?.length === 0) this.#unsent = null
    const isIdle = this.#unsent === null && this.#sent.isEmpty
    if (isIdle && this.#sendHalf === 'open' && !this.#isUnrouted) return
    this.#run()
  }

  onLinkWritable(): void {
    this.#isLinkFull = false
    this.#run()
  }

  send({ body, edgeFlags, traceId }: Piece): boolean {
    if (this.#sendHalf !== 'open') return false
    const { mtu } = this.#parts.options
    const piece = { body: keptBody(body), edgeFlags, traceId }
    if (mtu > 0 && body.length > mtu) {
      let part = piece
      for (const cut of cutBody(piece.body, mtu)) {
        this.#enqueue(payloadFlag.chunk, cut, part, null)
        part = { body: empty, edgeFlags: 0, traceId: null }
      }
    } else {
      this.#enqueue(0, piece.body, piece, null)
    }
    // Called by its application as it takes a piece: the answer is to be the true one.
    if (this.#isRunning) this.#transmitUnsent()
    this.#run()
    const hasRoom = this.#hasRoom()
    this.#wantsWritable ||= !hasRoom
    return hasRoom && this.#isSending
  }

  finish(): void {
    this.#finish()
    this.#run()
  }

  failWrite(reason: string): void {
    this.close(reason)
  }

  resume(): void {
    this.#isPaused = false
    this.#run()
  }

  close(reason: string): void {
    if (this.#isApplicationGone) return
    this.#leave(reason)
    this.#run()
  }

  /** Ends the circuit now: what is on its way is lost. */
  end(reason: string): void {
    this.#over(reason, true)
  }

  /** No more input comes and nothing can be sent: what has come is still delivered. */
  unrouted(): void {
    if (this.#isOver) return
    this.#isUnrouted = true
    this.#progressMs = this.#nowMs()
    this.#reason ||= 'the circuit was unrouted'
    this.#closeSendHalf()
    this.#run()
  }

  #nowMs(): number {
    return this.#parts.clock.monotonicMs()
  }

  /** False after `finish`, and once the other end takes no more. */
  get #isSending(): boolean {
    return this.#sendHalf === 'open'
  }

  #hasRoom(): boolean {
    return (this.#unsent?.length ?? 0) < this.#parts.options.txQueueSize
  }

  #enqueue(
    flags: number,
    body: Uint8Array,
    piece: Omit<Piece, 'body'> | null,
    capabilities: number | null,
  ): void {
    const { xgressUnsentMax, xgressUnsentBytesMax } = routerProgramLimits
    this.#unsent ??= new BoundedQueue(xgressUnsentMax)
    this.#unsentBytes += body.length
    const { edgeFlags, traceId } = piece ?? noHeaders
    const isTaken = this.#unsent.push({
      sequence: -1,
      flags: flags | this.#sideFlag,
      body,
      edgeFlags,
      traceId,
      capabilities,
      sentMs: -1,
    })
    if (!isTaken || this.#unsentBytes > xgressUnsentBytesMax) {
      this.#over('the application sends without waiting', true)
    }
  }

  #finish(): void {
    if (this.#sendHalf !== 'open') return
    this.#sendHalf = 'finishing'
    this.#finishCalledMs = this.#nowMs()
    this.#enqueue(payloadFlag.endOfFile, empty, null, null)
  }

  /** The application is gone: nothing is delivered any more; all that it sent still goes out. */
  #leave(reason: string): void {
    this.#reason ||= reason
    this.#chunks = null
    if (this.#receiveHalf === 'open') {
      this.#receiveHalf = 'discarding'
      // Out of turn, so that the other end stops sending at once.
      if (this.#isStarted && this.#sendHalf !== 'closed') {
        this.#sendAhead(payloadFlag.writeFailed, null)
      }
    }
    this.#finish()
    this.#releaseApplication()
  }

  /** Goes out before all that waits, whatever the window is. */
  #sendAhead(flags: number, capabilities: number | null): void {
    const payload: OutboundPayload = {
      sequence: this.#nextSequence,
      flags: flags | this.#sideFlag,
      body: empty,
      edgeFlags: 0,
      traceId: null,
      capabilities,
      sentMs: -1,
    }
    if (!this.#number()) return
    this.#sent.add(payload, this.#nowMs())
    if (this.#transmit(payload, 'payload') === 'full') this.#sent.makeDue(payload)
  }

  /** @returns false when all sequences are used up: the circuit is over. */
  #number(): boolean {
    if (this.#nextSequence < SEQUENCE_MAX) {
      this.#nextSequence += 1
      return true
    }
    this.#over('all sequence numbers are used', true)
    return false
  }

  #onPayload(payload: Payload): void {
    // Its own payload, sent around a loop.
    if ((payload.flags & payloadFlag.fromTerminator) === this.#sideFlag) return
    if (this.#isDroppedAtRandom()) return
    if (!this.#received.take(payload, !this.#isPaused)) {
      this.#onDropped()
      return
    }
    this.#taken.push(payload.sequence)
    this.#takenStamp = payload.stamp
    if ((payload.flags & payloadFlag.circuitStart) !== 0) this.#onStart(payload)
    if ((payload.flags & payloadFlag.writeFailed) !== 0) this.#closeSendHalf()
  }

  #isDroppedAtRandom(): boolean {
    const { randomDrops, drop1InN } = this.#parts.options
    return randomDrops && (this.#parts.random ?? Math.random)() * drop1InN < 1
  }

  /** A sender whose payloads find no room hears at times that this end is alive. */
  #onDropped(): void {
    const nowMs = this.#nowMs()
    if (nowMs - this.#droppedAnsweredMs < DROPPED_ANSWERED_EVERY_MS) return
    this.#droppedAnsweredMs = nowMs
    this.#isUpdateDue = true
  }

  #onStart({ capabilities }: Payload): void {
    if (this.#isStarted) return
    this.#isStarted = true
    if (capabilities === null) return
    this.#onCapabilities(capabilities)
    this.#sendAhead(0, CAN_END_OF_FILE)
  }

  #onCapabilities(capabilities: number): void {
    this.#peerCanEndOfFile = (capabilities & CAN_END_OF_FILE) !== 0
  }

  #onAcknowledgement(message: ChannelMessage): void {
    const acknowledgement = readAcknowledgement(message)
    if (acknowledgement === null) return
    if ((acknowledgement.flags & payloadFlag.fromTerminator) === this.#sideFlag) return
    const nowMs = this.#nowMs()
    this.#progressMs = nowMs
    this.#sent.acknowledge(acknowledgement, nowMs)
  }

  /** Does all that follows from the state, until nothing does. */
  #run(): void {
    this.#isDirty = true
    if (this.#isRunning) return
    this.#isRunning = true
    while (this.#isDirty && !this.#isOver) {
      this.#isDirty = false
      this.#deliverAll()
      this.#acknowledgeAll()
      this.#transmitUnsent()
      this.#transmitAgain()
      this.#tellWritable()
      this.#judgeEnd()
    }
    this.#isRunning = false
  }

  #deliverAll(): void {
    while (!this.#isPaused || this.#receiveHalf !== 'open') {
      const payload = this.#received.shift()
      if (payload === null) break
      this.#progressMs = this.#nowMs()
      this.#deliver(payload)
    }
    const { bytes } = this.#received
    this.#isUpdateDue ||= this.#bufferedSaid > BUFFERED_SAID_MIN && bytes < this.#bufferedSaid / 2
  }

  #deliver(payload: Payload): void {
    const { flags, capabilities } = payload
    if ((flags & ENDS) !== 0) {
      this.#onEnded()
      return
    }
    if (capabilities !== null) this.#onCapabilities(capabilities)
    if (this.#receiveHalf !== 'open') return
    if ((flags & payloadFlag.chunk) === 0) {
      if (!isContent(payload)) return
      this.#deliverPiece(payload)
      return
    }
    this.#chunks ??= new ChunkJoiner(
      Math.min(this.#parts.options.rxBufferSize, routerProgramLimits.xgressJoinedBytesMax),
    )
    const joined = this.#chunks.push(payload)
    if (joined === 'malformed') this.#over('the other end sent malformed chunks', true)
    else if (joined !== 'incomplete') this.#deliverPiece(joined)
  }

  #deliverPiece({ body, edgeFlags, traceId }: Piece): void {
    this.#callApplication(() => {
      const isTaken = this.#parts.application.deliver({ body, edgeFlags, traceId })
      this.#isPaused ||= !isTaken
    })
  }

  #onEnded(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#chunks = null
    const wasOpen = this.#receiveHalf === 'open'
    this.#receiveHalf = 'ended'
    if (wasOpen) this.#callApplication(() => this.#parts.application.onFinished())
  }

  /** An application that throws is one that is gone. */
  #callApplication(call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#leave(error instanceof Error ? error.message : String(error))
    }
  }

  #acknowledgeAll(): void {
    const sequences = this.#taken
    if (sequences.length === 0 && !this.#isUpdateDue) return
    this.#isUpdateDue = false
    this.#taken = []
    this.#bufferedSaid = this.#received.bytes
    const acknowledgement = acknowledgementMessage(this.#circuitId, {
      flags: this.#sideFlag,
      bufferedBytes: this.#bufferedSaid,
      stamp: sequences.length === 0 ? 0 : this.#takenStamp,
      sequences,
    })
    this.#parts.transmit(acknowledgement, 'acknowledgement')
  }

  #transmitUnsent(): void {
    if (!this.#isStarted || this.#isTransmitting) return
    this.#isTransmitting = true
    while (!this.#isLinkFull && !this.#sent.isBlocked) {
      const payload = this.#unsent?.peek()
      if (payload === undefined || !this.#isNumbered(payload)) break
      // It is in the buffer before the answer to it, which may come at once.
      this.#sent.add(payload, this.#nowMs())
      if (this.#transmit(payload, 'payload') === 'full') {
        this.#sent.remove(payload)
        this.#isLinkFull = true
        break
      }
      // The answer may have closed this half.
      if (this.#unsent === null) break
      this.#unsent.shift()
      this.#unsentBytes -= payload.body.length
      if ((payload.flags & ENDS) !== 0) this.#finishedMs = this.#nowMs()
    }
    this.#isTransmitting = false
  }

  /** It keeps the number that it has first been given. */
  #isNumbered(payload: OutboundPayload): boolean {
    if (payload.sequence !== -1) return true
    payload.sequence = this.#nextSequence
    if ((payload.flags & payloadFlag.endOfFile) !== 0 && !this.#peerCanEndOfFile) {
      payload.flags ^= ENDS
    }
    return this.#number()
  }

  #transmitAgain(): void {
    const nowMs = this.#nowMs()
    for (const payload of this.#sent.due(nowMs)) {
      if (!this.#sent.has(payload)) continue
      payload.flags |= payloadFlag.sentAgain
      if (this.#transmit(payload, 'retransmission') === 'full') return
      this.#sent.onSentAgain(payload, nowMs)
    }
  }

  #transmit(payload: OutboundPayload, kind: TransmitKind): 'sent' | 'full' {
    const message = payloadMessage(this.#circuitId, payload, stampAt(this.#nowMs()))
    return this.#parts.transmit(message, kind)
  }

  #tellWritable(): void {
    if (!this.#wantsWritable || this.#isApplicationGone || this.#sendHalf !== 'open') return
    if (!this.#hasRoom()) return
    this.#wantsWritable = false
    this.#callApplication(() => this.#parts.application.onWritable())
  }

  #closeSendHalf(): void {
    this.#sendHalf = 'closed'
    this.#unsent = null
    this.#unsentBytes = 0
    this.#sent.clear()
  }

  #judgeEnd(): void {
    const nowMs = this.#nowMs()
    if (this.#isUnrouted) {
      this.#judgeUnrouted(nowMs)
      return
    }
    if (this.#sendHalf === 'finishing') this.#judgeFinished(nowMs)
    if (this.#sendHalf === 'closed' && this.#receiveHalf !== 'open') {
      this.#over(this.#reason || 'both ends have finished', true)
    }
  }

  /** An application that is there may wait for the other end as long as it likes. */
  #judgeFinished(nowMs: number): void {
    const hasSentAll = this.#finishedMs !== Infinity
    if (hasSentAll && this.#sent.isEmpty) {
      if (nowMs - this.#finishedMs >= LINGER_MS) this.#closeSendHalf()
      return
    }
    if (!hasSentAll && !this.#isApplicationGone) return
    const quietMs = nowMs - Math.max(this.#finishCalledMs, this.#progressMs)
    if (quietMs < this.#parts.options.maxCloseWaitMs) return
    this.#reason ||= 'the other end does not answer'
    this.#closeSendHalf()
  }

  #judgeUnrouted(nowMs: number): void {
    const isDone = this.#receiveHalf !== 'open' || !this.#received.hasNext
    const isStuck = nowMs - this.#progressMs >= this.#parts.options.maxCloseWaitMs
    if (isDone || isStuck) this.#over(this.#reason, false)
  }

  #over(reason: string, endsCircuit: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#reason ||= reason
    if (endsCircuit && this.#isStarted) this.#transmitEnd()
    this.#closeSendHalf()
    this.#receiveHalf = 'ended'
    this.#received.clear()
    this.#chunks = null
    this.#taken = []
    this.#releaseApplication()
    this.#parts.onClosed(this.#reason, endsCircuit)
  }

  /** Sent once: when it is lost, the controller ends the circuit. */
  #transmitEnd(): void {
    const end = {
      sequence: Math.min(this.#nextSequence, SEQUENCE_MAX),
      flags: payloadFlag.circuitEnd | this.#sideFlag,
      body: empty,
      edgeFlags: 0,
      traceId: null,
      capabilities: null,
    }
    const message = payloadMessage(this.#circuitId, end, stampAt(this.#nowMs()))
    this.#parts.transmit(message, 'payload')
  }

  #releaseApplication(): void {
    if (this.#isApplicationGone) return
    this.#isApplicationGone = true
    try {
      this.#parts.application.onClosed(this.#reason)
    } catch {
      // It is gone already.
    }
  }
}

const noHeaders = { edgeFlags: 0, traceId: null }
