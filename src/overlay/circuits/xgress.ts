import type { ChannelMessage } from '../../channel/frame.ts'
import { textValue } from '../../channel/headers.ts'
import type { Clock } from '../../lib/clock.ts'
import { circuitLimits } from './limits.ts'
import { ChunkJoiner, cutBody } from './chunks.ts'
import type { Application, CircuitEnd } from './circuit-ends.ts'
import { ENDS, Outbox, type Transmit } from './outbox.ts'
import {
  acknowledgementMessage,
  CAN_END_OF_FILE,
  circuitMessage,
  isContent,
  keptBody,
  type Payload,
  payloadFlag,
  type Piece,
  readAcknowledgement,
  readPayload,
  traceRouteAnswer,
} from '../../channel/messages/payload.ts'
import { ReceiveBuffer } from './receive-buffer.ts'
import {
  readTraceAnswer,
  type TraceRequest,
  traceRequestMessage,
} from '../../channel/messages/route-trace.ts'
import type { XgressOptions } from './xgress-options.ts'

/** The room that ends share for what they keep until it is acknowledged or delivered. */
export interface BufferRoom {
  /** Whether an end that keeps something already may take some more. */
  readonly hasRoom: () => boolean
  /** @param bytes fewer than zero: given back. */
  readonly take: (bytes: number) => void
}

export interface XgressParts {
  readonly circuitId: string
  readonly isTerminator: boolean
  readonly options: XgressOptions
  readonly application: Application
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly transmit: Transmit
  /**
   * Called once, last: the end is to be forgotten.
   * @param endsCircuit false: the circuit was taken from this router already.
   */
  readonly onClosed: (reason: string, endsCircuit: boolean) => void
  /** Called once, before `onClosed`: all is said, and this end only answers the other one still. */
  readonly onEnded?: () => void
  /** Name of this end in answers to requests for the route of a circuit. */
  readonly traced?: { readonly type: string; readonly id: string }
  /** Called with the bytes of each piece that the application is given. */
  readonly onDelivered?: (bytes: number) => void
  /** The room for what this end keeps; absent: it is not counted. */
  readonly room?: BufferRoom
  /** Chooses the payloads that the option randomDrops drops; in [0, 1). */
  readonly random?: () => number
}

/** The other end may ask for acknowledgements that were lost for so long, after all is said. */
const LINGER_MS = 5000
/** Once this many bytes were said to wait here, the sender hears when half of them are gone. */
const BUFFERED_SAID_MIN = 10_000
/** Between two answers to payloads that find no room. */
const DROPPED_ANSWERED_EVERY_MS = 1000

const nothing: Piece = { body: new Uint8Array(0), edgeFlags: 0, traceId: null }

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
  readonly #outbox: Outbox
  readonly #received: ReceiveBuffer
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
  #hasEnded = false
  #endedMs = -Infinity
  /** Some of what the application sent may not have arrived. */
  #hasLostSent = false
  #isDone = false
  #isPaused = false
  #wantsWritable = false
  #isApplicationGone = false
  #isUnrouted = false
  #isOver = false
  #reason = ''
  #finishCalledMs = Infinity
  /** Last sign that the other end takes what is sent, or the application what has come. */
  #progressMs: number
  /** Bytes that the room was told of. */
  #countedBytes = 0
  #isRunning = false
  #isDirty = false

  constructor(parts: XgressParts) {
    const { circuitId, isTerminator, options, clock, transmit } = parts
    this.#parts = parts
    this.#circuitId = textValue(circuitId)
    this.#sideFlag = isTerminator ? payloadFlag.fromTerminator : 0
    this.#openedMs = clock.monotonicMs()
    this.#progressMs = this.#openedMs
    this.#outbox = new Outbox({
      circuitId: this.#circuitId,
      sideFlag: this.#sideFlag,
      options,
      clock,
      transmit,
    })
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
    return this.#received.bytes + joined + this.#outbox.bytes
  }

  /** Bytes that were sent and are not acknowledged. */
  get inFlightBytes(): number {
    return this.#outbox.inFlightBytes
  }

  get windowBytes(): number {
    return this.#outbox.windowBytes
  }

  /** Sends the first payload of the circuit, at the end that asked for it. */
  start(): void {
    if (this.#parts.isTerminator || this.#isStarted || this.#isOver) return
    this.#isStarted = true
    this.#outbox.pushAhead(payloadFlag.circuitStart, CAN_END_OF_FILE)
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
      else this.#onTraced(message)
    }
    this.#run()
  }

  #onTraced(message: ChannelMessage): void {
    const answer = readTraceAnswer(message)
    const { application } = this.#parts
    if (answer !== null) this.#callApplication(() => application.onTraced?.(answer))
  }

  trace(request: TraceRequest): void {
    if (this.#isOver || this.#isUnrouted) return
    this.#parts.transmit(traceRequestMessage(this.#circuitId, request), 'acknowledgement')
  }

  /** @param nowMs of the monotonic clock. */
  tick(nowMs: number): void {
    if (this.#isOver) return
    this.#outbox.onLinkWritable()
    const { circuitStartTimeout } = this.#parts.options
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

  send({ body, edgeFlags, traceId }: Piece): boolean {
    if (this.#sendHalf !== 'open') return false
    const { mtu } = this.#parts.options
    const piece = { body: keptBody(body), edgeFlags, traceId }
    if (mtu > 0 && body.length > mtu) {
      let part: Omit<Piece, 'body'> = piece
      for (const cut of cutBody(piece.body, mtu)) {
        this.#push(payloadFlag.chunk, { ...part, body: cut })
        part = nothing
      }
    } else {
      this.#push(0, piece)
    }
    // Called by its application as it takes a piece: the answer is to be the true one.
    if (this.#isRunning && this.#isStarted) this.#outbox.transmit()
    this.#run()
    const hasRoom = this.#hasRoomToSend
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
    this.#cutSendHalf()
    this.#run()
  }

  #nowMs(): number {
    return this.#parts.clock.monotonicMs()
  }

  /** False after `finish`, and once the other end takes no more. */
  get #isSending(): boolean {
    return this.#sendHalf === 'open'
  }

  #push(flags: number, piece: Piece): void {
    if (this.#outbox.push(flags, piece)) return
    this.#over('the application sends without waiting', true)
  }

  #finish(): void {
    if (this.#sendHalf !== 'open') return
    this.#sendHalf = 'finishing'
    this.#finishCalledMs = this.#nowMs()
    this.#push(payloadFlag.endOfFile, nothing)
  }

  /** The application is gone: nothing is delivered any more; all that it sent still goes out. */
  #leave(reason: string): void {
    this.#reason ||= reason
    this.#chunks = null
    if (this.#receiveHalf === 'open') {
      this.#receiveHalf = 'discarding'
      // Out of turn, so that the other end stops sending at once.
      if (this.#isStarted && this.#sendHalf !== 'closed') {
        this.#outbox.pushAhead(payloadFlag.writeFailed, null)
      }
    }
    this.#finish()
    this.#releaseApplication()
  }

  #onPayload(payload: Payload): void {
    // Its own payload, sent around a loop.
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
    this.#outbox.pushAhead(0, CAN_END_OF_FILE)
  }

  #onCapabilities(capabilities: number): void {
    this.#outbox.peerCanEndOfFile = (capabilities & CAN_END_OF_FILE) !== 0
  }

  #onAcknowledgement(message: ChannelMessage): void {
    const acknowledgement = readAcknowledgement(message)
    if (acknowledgement === null) return
    // @guard payloads-that-lie--acknowledgement
    if ((acknowledgement.flags & payloadFlag.fromTerminator) === this.#sideFlag) return
    this.#progressMs = this.#nowMs()
    this.#outbox.acknowledge(acknowledgement)
  }

  /** An end that keeps nothing goes on, however much others keep. */
  get #hasRoomAhead(): boolean {
    return this.bufferedBytes === 0 || this.#parts.room?.hasRoom() !== false
  }

  /** While it is refused, something is on its way: the ticks look again. */
  get #hasRoomToSend(): boolean {
    const { hasRoom, bytes } = this.#outbox
    // @guard circuits-that-take-nothing--sent
    return hasRoom && (bytes === 0 || this.#parts.room?.hasRoom() !== false)
  }

  #countBuffered(): void {
    const bytes = this.#isOver ? 0 : this.bufferedBytes
    if (bytes === this.#countedBytes) return
    this.#parts.room?.take(bytes - this.#countedBytes)
    this.#countedBytes = bytes
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
      this.#transmit()
      this.#tellWritable()
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
    // A sender whose data is discarded is not to send more of it.
    if (this.#receiveHalf !== 'open' || this.#bufferedSaid <= BUFFERED_SAID_MIN) return
    this.#isUpdateDue ||= this.#received.bytes < this.#bufferedSaid / 2
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
      Math.min(this.#parts.options.rxBufferSize, circuitLimits.xgressJoinedBytesMax),
    )
    const joined = this.#chunks.push(payload)
    if (joined === 'malformed') this.#over('the other end sent malformed chunks', true)
    else if (joined !== 'incomplete') this.#deliverPiece(joined)
  }

  #deliverPiece({ body, edgeFlags, traceId }: Piece): void {
    this.#callApplication(() => {
      this.#parts.onDelivered?.(body.length)
      const isTaken = this.#parts.application.deliver({ body, edgeFlags, traceId })
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

  #transmit(): void {
    if (!this.#isStarted) return
    this.#outbox.transmit()
    this.#outbox.transmitAgain()
    if (this.#outbox.isExhausted) this.#over('all sequence numbers are used', true)
  }

  #tellWritable(): void {
    if (!this.#wantsWritable || this.#isApplicationGone || this.#sendHalf !== 'open') return
    if (!this.#hasRoomToSend) return
    this.#wantsWritable = false
    this.#callApplication(() => this.#parts.application.onWritable())
  }

  /** The application has sent all that it had to send, and the other end has it. */
  get #isSentWhole(): boolean {
    const { isAcknowledged, sentAllMs } = this.#outbox
    return this.#sendHalf === 'finishing' && sentAllMs !== Infinity && isAcknowledged
  }

  #closeSendHalf(): void {
    this.#sendHalf = 'closed'
    this.#outbox.clear()
  }

  /** Closes it before its time. */
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
    // The other end may still ask for acknowledgements that were lost.
    if (this.#hasEnded && nowMs - this.#endedMs < LINGER_MS) return
    this.#over(this.#reason, true)
  }

  /** Neither the application nor the owner of the circuit waits for late acknowledgements. */
  #onDone(): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#reason ||= 'both ends have finished'
    this.#releaseApplication()
    this.#parts.onEnded?.()
  }

  /** An application that is there may wait for the other end as long as it likes. */
  #judgeFinished(nowMs: number): void {
    const { isAcknowledged, sentAllMs } = this.#outbox
    const hasSentAll = sentAllMs !== Infinity
    if (hasSentAll && isAcknowledged) {
      if (nowMs - sentAllMs >= LINGER_MS) this.#closeSendHalf()
      return
    }
    if (!hasSentAll && !this.#isApplicationGone) return
    const quietMs = nowMs - Math.max(this.#finishCalledMs, this.#progressMs)
    if (quietMs < this.#parts.options.maxCloseWaitMs) return
    this.#reason ||= 'the other end does not answer'
    this.#cutSendHalf()
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
    if (endsCircuit && this.#isStarted) this.#outbox.transmitEnd()
    this.#cutSendHalf()
    this.#receiveHalf = 'ended'
    this.#received.clear()
    this.#chunks = null
    this.#taken = []
    this.#releaseApplication()
    this.#countBuffered()
    this.#parts.onClosed(this.#reason, endsCircuit)
  }

  #releaseApplication(): void {
    if (this.#isApplicationGone) return
    this.#isApplicationGone = true
    try {
      this.#parts.application.onClosed(this.#reason, this.#hasEnded && !this.#hasLostSent)
    } catch {
      // It is gone already.
    }
  }
}
