import type { ChannelMessage } from '../../channel/frame.ts'
import { encodeText } from '../../channel/headers.ts'
import { circuitLimits } from './limits.ts'
import { ChunkJoiner, splitPayloadBody } from './chunks.ts'
import type { CircuitEndpoint } from './circuit-endpoint.ts'
import { ABORT_FLAGS, PayloadOutbox, STREAM_END_FLAGS } from './payload-outbox.ts'
import {
  acknowledgementMessage,
  END_OF_FILE_CAPABILITY,
  circuitContentType,
  hasPayloadContent,
  retainableBody,
  type Payload,
  payloadFlag,
  type PayloadContent,
  readAcknowledgement,
  readPayload,
  routeTraceResponseMessage,
} from '../../channel/messages/payload.ts'
import { ReceiveBuffer } from './receive-buffer.ts'
import {
  readTraceResponse,
  type TraceRequest,
  traceRequestMessage,
} from '../../channel/messages/route-trace.ts'
import type { XgressDeps } from './xgress-deps.ts'

/** Time after completion in which this endpoint acknowledges retransmitted payloads again. */
const LINGER_MS = 5000
/**
 * After reporting more than this many buffered bytes, this endpoint reports again when fewer than
 * half of them are buffered.
 */
const BUFFERED_SAID_MIN = 10_000
/** Minimum interval of acknowledgments for dropped payloads. */
const DROPPED_ANSWERED_EVERY_MS = 1000

const nothing: PayloadContent = { body: new Uint8Array(0), edgeFlags: 0, traceId: null }

type SendHalf = 'open' | 'finishing' | 'closed'
type ReceiveHalf = 'open' | 'discarding' | 'ended'

/**
 * One endpoint of a circuit: a reliable stream of payloads over links that may lose, duplicate or
 * reorder frames. It has no timer and no socket. Calls only change the state, and one loop performs
 * the resulting actions, so two endpoints and their applications can call each other without
 * recursion.
 */
export class Xgress implements CircuitEndpoint {
  readonly #deps: XgressDeps
  readonly #circuitId: Uint8Array
  readonly #sideFlag: number
  readonly #openedMs: number
  readonly #outbox: PayloadOutbox
  readonly #received: ReceiveBuffer
  /** No payload is sent before this is true. */
  #isStarted = false
  #sendHalf: SendHalf = 'open'
  #receiveHalf: ReceiveHalf = 'open'
  #chunks: ChunkJoiner | null = null
  /** Sequence numbers to acknowledge. `#takenStamp` is the stamp of the last of these payloads. */
  #taken: number[] = []
  #takenStamp = 0
  #bufferedSaid = 0
  #isUpdateDue = false
  #droppedAnsweredMs = -Infinity
  #hasEnded = false
  #endedMs = -Infinity
  /** True if some of the application's data may not have arrived. */
  #hasLostSent = false
  #isDone = false
  #isPaused = false
  #wantsWritable = false
  #isApplicationGone = false
  #isUnrouted = false
  #isOver = false
  #reason = ''
  #finishCalledMs = Infinity
  /** Time of the last acknowledgment or delivery. */
  #progressMs: number
  /** Bytes that this endpoint has taken from the memory budget. */
  #countedBytes = 0
  #isRunning = false
  #isDirty = false

  constructor(deps: XgressDeps) {
    const { circuitId, isTerminator, options, clock, transmit } = deps
    this.#deps = deps
    this.#circuitId = encodeText(circuitId)
    this.#sideFlag = isTerminator ? payloadFlag.fromTerminator : 0
    this.#openedMs = clock.monotonicMs()
    this.#progressMs = this.#openedMs
    this.#outbox = new PayloadOutbox({
      circuitId: this.#circuitId,
      sideFlag: this.#sideFlag,
      options,
      clock,
      transmit,
    })
    this.#received = new ReceiveBuffer(options.rxBufferSize)
  }

  get circuitId(): string {
    return this.#deps.circuitId
  }

  /** True once the application can no longer use this endpoint; its data may still be in flight. */
  get isClosed(): boolean {
    return this.#isApplicationGone
  }

  /** Bytes that are buffered here in both directions. */
  get bufferedBytes(): number {
    const joined = this.#chunks?.bytes ?? 0
    return this.#received.bytes + joined + this.#outbox.bytes
  }

  /** Bytes sent but not acknowledged. */
  get inFlightBytes(): number {
    return this.#outbox.inFlightBytes
  }

  get windowBytes(): number {
    return this.#outbox.windowBytes
  }

  /** Sends the first payload of the circuit; only at the endpoint that requested the circuit. */
  start(): void {
    if (this.#deps.isTerminator || this.#isStarted || this.#isOver) return
    this.#isStarted = true
    this.#outbox.pushAhead(payloadFlag.circuitStart, END_OF_FILE_CAPABILITY)
    this.#run()
  }

  /** @param message payload, acknowledgment or control message of this circuit. */
  receive(message: ChannelMessage): void {
    if (this.#isOver || this.#isUnrouted) return
    if (message.contentType === circuitContentType.payload) {
      const payload = readPayload(message)
      if (payload !== null) this.#onPayload(payload)
    } else if (message.contentType === circuitContentType.acknowledgement) {
      this.#onAcknowledgement(message)
    } else if (message.contentType === circuitContentType.control) {
      const traced = this.#deps.traced ?? { type: 'xgress', id: '' }
      const answer = routeTraceResponseMessage(message, traced)
      if (answer !== null) this.#deps.transmit(answer, 'acknowledgement')
      else this.#onTraced(message)
    }
    this.#run()
  }

  #onTraced(message: ChannelMessage): void {
    const answer = readTraceResponse(message)
    const { application } = this.#deps
    if (answer !== null) this.#callApplication(() => application.onTraced?.(answer))
  }

  trace(request: TraceRequest): void {
    if (this.#isOver || this.#isUnrouted) return
    this.#deps.transmit(traceRequestMessage(this.#circuitId, request), 'acknowledgement')
  }

  /** @param nowMs time of the monotonic clock. */
  tick(nowMs: number): void {
    if (this.#isOver) return
    this.#outbox.onLinkWritable()
    const { circuitStartTimeout } = this.#deps.options
    if (!this.#isStarted && nowMs - this.#openedMs >= circuitStartTimeout) {
      this.end(`no start of the circuit within ${circuitStartTimeout} ms`)
      return
    }
    this.#outbox.rest()
    this.#received.rest()
    if (this.#outbox.isEmpty && this.#sendHalf === 'open' && !this.#isUnrouted) return
    this.#run()
  }

  onLinkWritable(): void {
    this.#outbox.onLinkWritable()
    this.#run()
  }

  send({ body, edgeFlags, traceId }: PayloadContent): boolean {
    if (this.#sendHalf !== 'open') return false
    const { mtu } = this.#deps.options
    const piece = { body: retainableBody(body), edgeFlags, traceId }
    if (mtu > 0 && body.length > mtu) {
      let part: Omit<PayloadContent, 'body'> = piece
      for (const cut of splitPayloadBody(piece.body, mtu)) {
        this.#push(payloadFlag.chunk, { ...part, body: cut })
        part = nothing
      }
    } else {
      this.#push(0, piece)
    }
    // While `#run` calls the application, the nested call of `#run` below does nothing.
    // Transmitting first makes the result accurate.
    if (this.#isRunning && this.#isStarted) this.#outbox.transmit()
    this.#run()
    const hasRoom = this.#hasRoomToSend
    this.#wantsWritable ||= !hasRoom
    return hasRoom && this.#isSending
  }

  finish(): void {
    this.#finish(payloadFlag.endOfFile)
    this.#run()
  }

  abort(reason: string): void {
    if (this.#isApplicationGone) return
    this.#leave(reason, ABORT_FLAGS)
    this.#run()
  }

  resume(): void {
    this.#isPaused = false
    this.#run()
  }

  close(reason: string): void {
    if (this.#isApplicationGone) return
    this.#leave(reason, payloadFlag.endOfFile)
    this.#run()
  }

  /** Ends the circuit immediately; data in flight is lost. */
  end(reason: string): void {
    this.#over(reason, true)
  }

  /** Called when no more frames can arrive or be sent; buffered data is still delivered. */
  unrouted(): void {
    if (this.#isOver) return
    this.#isUnrouted = true
    this.#progressMs = this.#nowMs()
    this.#reason ||= 'the circuit was unrouted'
    this.#cutSendHalf()
    this.#run()
  }

  #nowMs(): number {
    return this.#deps.clock.monotonicMs()
  }

  /** False after `finish`, or when the other endpoint accepts no more data. */
  get #isSending(): boolean {
    return this.#sendHalf === 'open'
  }

  #push(flags: number, piece: PayloadContent): void {
    if (this.#outbox.push(flags, piece)) return
    this.#over('the application sends without waiting', true)
  }

  /** @param flags of the last payload. */
  #finish(flags: number): void {
    if (this.#sendHalf !== 'open') return
    this.#sendHalf = 'finishing'
    this.#finishCalledMs = this.#nowMs()
    this.#push(flags, nothing)
  }

  /**
   * Handles that the application has closed its endpoint: it receives nothing more, but all data
   * that it sent is transmitted.
   * @param endFlags flags of the payload that ends its stream.
   */
  #leave(reason: string, endFlags: number): void {
    this.#reason ||= reason
    this.#chunks = null
    if (this.#receiveHalf === 'open') {
      this.#receiveHalf = 'discarding'
      // Sent before other payloads, so that the other endpoint stops sending soon.
      if (this.#isStarted && this.#sendHalf !== 'closed') {
        this.#outbox.pushAhead(payloadFlag.writeFailed, null)
      }
    }
    this.#finish(endFlags)
    this.#releaseApplication()
  }

  #onPayload(payload: Payload): void {
    // A routing loop returned a payload of this endpoint.
    // @guard payloads-that-lie--loop, 47-end-overtakes-payloads
    if ((payload.flags & payloadFlag.fromTerminator) === this.#sideFlag) return
    if (this.#isDroppedAtRandom()) return
    const isAheadDropped = this.#received.isAhead(payload) && !this.#hasRoomAhead
    // @guard circuits-that-take-nothing--ahead
    if (isAheadDropped || !this.#received.take(payload, !this.#isPaused)) {
      this.#onDropped()
      return
    }
    this.#taken.push(payload.sequence)
    this.#takenStamp = payload.stamp
    if ((payload.flags & payloadFlag.circuitStart) !== 0) this.#onStart(payload)
    if ((payload.flags & payloadFlag.writeFailed) !== 0) this.#cutSendHalf()
  }

  #isDroppedAtRandom(): boolean {
    const { randomDrops, drop1InN } = this.#deps.options
    return randomDrops && (this.#deps.random ?? Math.random)() * drop1InN < 1
  }

  /**
   * Called when a payload was dropped. From time to time, this shows the sender that this endpoint
   * is alive.
   */
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
    this.#outbox.pushAhead(0, END_OF_FILE_CAPABILITY)
  }

  #onCapabilities(capabilities: number): void {
    this.#outbox.peerCanEndOfFile = (capabilities & END_OF_FILE_CAPABILITY) !== 0
  }

  #onAcknowledgement(message: ChannelMessage): void {
    const acknowledgement = readAcknowledgement(message)
    if (acknowledgement === null) return
    // @guard payloads-that-lie--acknowledgement
    if ((acknowledgement.flags & payloadFlag.fromTerminator) === this.#sideFlag) return
    this.#progressMs = this.#nowMs()
    this.#outbox.acknowledge(acknowledgement)
  }

  /** Always true without buffered data, even if the memory budget is used up. */
  get #hasRoomAhead(): boolean {
    return this.bufferedBytes === 0 || this.#deps.room?.hasRoom() !== false
  }

  /**
   * Whether the application may send another payload. If not, data is in flight or waits to be
   * sent, and each tick checks this again.
   */
  get #hasRoomToSend(): boolean {
    const { hasRoom, bytes } = this.#outbox
    // @guard circuits-that-take-nothing--sent
    return hasRoom && (bytes === 0 || this.#deps.room?.hasRoom() !== false)
  }

  #countBuffered(): void {
    const bytes = this.#isOver ? 0 : this.bufferedBytes
    if (bytes === this.#countedBytes) return
    this.#deps.room?.take(bytes - this.#countedBytes)
    this.#countedBytes = bytes
  }

  /** Performs all actions that the state requires. */
  #run(): void {
    this.#isDirty = true
    if (this.#isRunning) return
    this.#isRunning = true
    while (this.#isDirty && !this.#isOver) {
      this.#isDirty = false
      this.#deliverAll()
      this.#acknowledgeAll()
      this.#transmit()
      this.#reportWritable()
      this.#judgeEnd()
    }
    this.#isRunning = false
    this.#countBuffered()
  }

  #deliverAll(): void {
    while (!this.#isPaused || this.#receiveHalf !== 'open') {
      const payload = this.#received.shift()
      if (payload === null) break
      this.#progressMs = this.#nowMs()
      this.#deliver(payload)
    }
    // No update while received data is discarded, because the sender should stop sending.
    if (this.#receiveHalf !== 'open' || this.#bufferedSaid <= BUFFERED_SAID_MIN) return
    this.#isUpdateDue ||= this.#received.bytes < this.#bufferedSaid / 2
  }

  #deliver(payload: Payload): void {
    const { flags, capabilities } = payload
    if ((flags & STREAM_END_FLAGS) !== 0) {
      if ((flags & ABORT_FLAGS) === ABORT_FLAGS) this.#onAborted()
      else this.#onEnded()
      return
    }
    if (capabilities !== null) this.#onCapabilities(capabilities)
    if (this.#receiveHalf !== 'open') return
    if ((flags & payloadFlag.chunk) === 0) {
      if (!hasPayloadContent(payload)) return
      this.#deliverPiece(payload)
      return
    }
    this.#chunks ??= new ChunkJoiner(
      Math.min(this.#deps.options.rxBufferSize, circuitLimits.xgressJoinedBytesMax),
    )
    const joined = this.#chunks.push(payload)
    if (joined === 'malformed') this.#over('the other end sent malformed chunks', true)
    else if (joined !== 'incomplete') this.#deliverPiece(joined)
  }

  #deliverPiece({ body, edgeFlags, traceId }: PayloadContent): void {
    this.#callApplication(() => {
      this.#deps.onDelivered?.(body.length)
      const isTaken = this.#deps.application.deliver({ body, edgeFlags, traceId })
      this.#isPaused ||= !isTaken
    })
  }

  #onEnded(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#endedMs = this.#nowMs()
    this.#chunks = null
    const wasOpen = this.#receiveHalf === 'open'
    this.#receiveHalf = 'ended'
    if (wasOpen) this.#callApplication(() => this.#deps.application.onFinished())
  }

  /** The other application has failed, so the end of its stream is missing. */
  #onAborted(): void {
    if (this.#receiveHalf === 'ended') return
    this.#reason ||= 'the other end has failed'
    this.#chunks = null
    this.#receiveHalf = 'ended'
    this.#cutSendHalf()
  }

  /**
   * Calls the application. If it throws, its endpoint closes as if the application had called
   * `abort`.
   */
  #callApplication(call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#leave(error instanceof Error ? error.message : String(error), ABORT_FLAGS)
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
    this.#deps.transmit(acknowledgement, 'acknowledgement')
  }

  #transmit(): void {
    if (!this.#isStarted) return
    this.#outbox.transmit()
    this.#outbox.transmitAgain()
    if (this.#outbox.isExhausted) this.#over('all sequence numbers are used', true)
  }

  #reportWritable(): void {
    if (!this.#wantsWritable || this.#isApplicationGone || this.#sendHalf !== 'open') return
    if (!this.#hasRoomToSend) return
    this.#wantsWritable = false
    this.#callApplication(() => this.#deps.application.onWritable())
  }

  /** True if the application has finished and all its data is acknowledged. */
  get #isSentWhole(): boolean {
    const { isAcknowledged, sentAllMs } = this.#outbox
    return this.#sendHalf === 'finishing' && sentAllMs !== Infinity && isAcknowledged
  }

  #closeSendHalf(): void {
    this.#sendHalf = 'closed'
    this.#outbox.clear()
  }

  /** Closes the send side early; unsent data is lost. */
  #cutSendHalf(): void {
    if (this.#sendHalf === 'closed') return
    this.#hasLostSent ||= !this.#isSentWhole
    this.#closeSendHalf()
  }

  #judgeEnd(): void {
    const nowMs = this.#nowMs()
    if (this.#isUnrouted) {
      this.#judgeUnrouted(nowMs)
      return
    }
    if (this.#receiveHalf !== 'open' && (this.#sendHalf === 'closed' || this.#isSentWhole)) {
      this.#onDone()
    }
    if (this.#sendHalf === 'finishing') this.#judgeFinished(nowMs)
    if (this.#sendHalf !== 'closed' || this.#receiveHalf === 'open') return
    // Stays open for a while, because lost acknowledgments may have to be sent again.
    if (this.#hasEnded && nowMs - this.#endedMs < LINGER_MS) return
    this.#over(this.#reason, true)
  }

  /**
   * Reports the end to the application and to the creator of this endpoint; neither needs to wait
   * for late acknowledgments.
   */
  #onDone(): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#reason ||= 'both ends have finished'
    this.#releaseApplication()
    this.#deps.onEnded?.()
  }

  /**
   * Closes the send side if all data was sent and acknowledged, `LINGER_MS` after it was sent. Cuts
   * the send side if the other endpoint has been silent for `maxCloseWaitMs`. While data is unsent,
   * this time limit applies only once the application has left.
   */
  #judgeFinished(nowMs: number): void {
    const { isAcknowledged, sentAllMs } = this.#outbox
    const hasSentAll = sentAllMs !== Infinity
    if (hasSentAll && isAcknowledged) {
      if (nowMs - sentAllMs >= LINGER_MS) this.#closeSendHalf()
      return
    }
    if (!hasSentAll && !this.#isApplicationGone) return
    const quietMs = nowMs - Math.max(this.#finishCalledMs, this.#progressMs)
    if (quietMs < this.#deps.options.maxCloseWaitMs) return
    this.#reason ||= 'the other end does not answer'
    this.#cutSendHalf()
  }

  #judgeUnrouted(nowMs: number): void {
    const isDone = this.#receiveHalf !== 'open' || !this.#received.hasNext
    const isStuck = nowMs - this.#progressMs >= this.#deps.options.maxCloseWaitMs
    if (isDone || isStuck) this.#over(this.#reason, false)
  }

  #over(reason: string, endsCircuit: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#reason ||= reason
    const isSentWhole = this.#sendHalf === 'closed' || this.#isSentWhole
    if (endsCircuit && this.#isStarted) this.#outbox.transmitEnd(isSentWhole && !this.#hasLostSent)
    this.#cutSendHalf()
    this.#receiveHalf = 'ended'
    this.#received.clear()
    this.#chunks = null
    this.#taken = []
    this.#releaseApplication()
    this.#countBuffered()
    this.#deps.onClosed(this.#reason, endsCircuit)
  }

  #releaseApplication(): void {
    if (this.#isApplicationGone) return
    this.#isApplicationGone = true
    try {
      this.#deps.application.onClosed(this.#reason, this.#hasEnded && !this.#hasLostSent)
    } catch {
      // The error is ignored, because the application no longer uses the circuit.
    }
  }
}
