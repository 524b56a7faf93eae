import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

import type { Clock } from '../lib/clock.ts'
import { periodicScheduler } from '../lib/periodic-scheduler.ts'
import {
  type ChannelMessage,
  frameByteLength,
  FrameDecoder,
  type OutboundMessage,
} from './frame.ts'
import { FrameWriter, type SendQueueCounter } from './frame-writer.ts'
import type { ChannelHeaders } from './header-view.ts'
import { encodeFlag, encodeInt32, readInt32, encodeText } from './headers.ts'
import { HeartbeatExchange } from './heartbeat.ts'
import type { ChannelLimits } from './limits.ts'
import { messageBodyBytesMax, messageRefusalReason } from './message-bounds.ts'
import { MALFORMED_BODY_FAULT } from './wire-scan.ts'
import {
  channelContentType,
  HELLO_SEQUENCE,
  channelHeaderKey,
  reflectedHeaderKeys,
} from './numbers.ts'

export interface ChannelDeps {
  /** A TLS socket. The channel closes it. */
  readonly socket: Duplex
  readonly limits: ChannelLimits
  readonly clock: Clock
  /** First message of a dialer; the first received message is its answer. Absent for a listener. */
  readonly hello?: ChannelMessage
  /** Called for every sent and received message, for tracing. */
  readonly onFrame?: (direction: 'in' | 'out', message: ChannelMessage) => void
  /**
   * Called for the first message, which must be the hello or its answer. The channel is open only
   * after `open`.
   */
  readonly onHello: (message: ChannelMessage) => void
  /**
   * Called for each later message except heartbeats, latency probes, awaited replies and refused
   * messages. The channel handles the next message after the returned iterator has finished; null:
   * no steps remain.
   */
  readonly onMessage: (message: ChannelMessage) => Iterator<void> | null
  /**
   * Schedules the handling of one message, so that many peers can share processor time fairly. If
   * absent, the channel handles each message immediately and completely.
   * @returns a promise that resolves when the message is handled; null if it is handled already.
   */
  readonly begin?: (work: () => Iterator<void> | null) => Promise<void> | null
  /** Called for each refused message, which is malformed or exceeds its bound. */
  readonly onRefused?: (contentType: number, fault: string) => void
  /** Called once, when the channel closes for any reason. */
  readonly onClose: (reason: string) => void
}

interface Waiter {
  readonly resolve: (reply: ChannelMessage) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

interface RateWindow {
  /** Monotonic ms. */
  sinceMs: number
  messages: number
  bytes: number
}

/**
 * Why messages wait: `hello`: the channel is not open yet; `drain`: the peer does not read;
 * `window`: the rate limit of this second; `turn`: other connections are served first.
 */
type Hold = 'hello' | 'drain' | 'window' | 'turn'

const noHeaders: ChannelHeaders = new Map()
const NO_BODY = new Uint8Array()

const RATE_WINDOW_MS = 1000
/** Maximum delay before a peer's heartbeat stamp is returned, alone or with another message. */
const OWED_MS = 2
/** Maximum messages in a row; then the event loop serves other connections. */
// @guard client-that-repeats-itself--stretch
const STRETCH_MESSAGES = 64
/** Time between the last write, such as the reason of a refusal, and destroying the socket. */
const LINGER_MS = 1000
/** Two refused messages within this time close the channel. */
const REFUSED_AGAIN_MS = 60_000

/**
 * One channel over one socket, for the dialer or the listener: frames, replies, heartbeats and
 * limits. Only the bounds of message bodies depend on the protocol above.
 */
export class Channel {
  readonly #deps: ChannelDeps
  readonly #decoder: FrameDecoder
  readonly #writer: FrameWriter
  /**
   * Pending requests by sequence number; all sockets of a channel share the map, because a reply
   * may arrive over any of them.
   */
  #waiters = new Map<number, Waiter>()
  #partOf: Channel | null = null
  #heartbeats: HeartbeatExchange | null = null
  #sequence = 0
  #hasHello = false
  /** Sequence number of the peer's hello, for the answer. */
  #helloSequence = HELLO_SEQUENCE
  #isClosed = false
  #stopChecks: (() => void) | null = null
  #owedTimer: NodeJS.Timeout | null = null
  #resumeTimer: NodeJS.Timeout | null = null
  #isTurnDue = false
  #isBusy = false
  #isReading = false
  #isPaused = false
  #refusedMs = -Infinity
  /** Messages received in this second; sockets of one channel share the count. */
  #window: RateWindow = { sinceMs: -Infinity, messages: 0, bytes: 0 }

  constructor(deps: ChannelDeps) {
    this.#deps = deps
    const { socket, limits, clock } = deps
    this.#writer = new FrameWriter(socket, clock)
    this.#decoder = new FrameDecoder({
      frameHeadersBytesMax: limits.helloHeadersBytesMax,
      frameHeadersMax: limits.frameHeadersMax,
      frameBodyBytesMax: limits.helloBodyBytesMax,
    })
    // Without this, Nagle's algorithm delays a small message, up to 40 ms with some peers.
    if (socket instanceof Socket) socket.setNoDelay(true)
    socket.on('data', (chunk: Uint8Array) => this.#onBytes(chunk))
    socket.on('drain', () => this.#read())
    socket.on('error', (error) => this.close(error.message))
    socket.on('end', () => this.close('closed by the peer'))
    socket.on('close', () => this.close('closed by the peer'))
    if (deps.hello !== undefined) this.#write(deps.hello)
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Time since the peer last answered a heartbeat, or since the opening, ms; 0 before that. */
  get silentForMs(): number {
    return this.#heartbeats?.silentForMs ?? 0
  }

  /** The last measured round trip of a heartbeat; null before the first. */
  get roundTripMs(): number | null {
    return this.#heartbeats?.roundTripMs ?? null
  }

  /**
   * Opens the channel: starts heartbeats and accepts larger messages.
   * @param answer the answer to the peer's hello; null for a dialer, which has received the answer.
   * @param partOf the channel to which this socket is added. The two share rate limits, pending
   * requests and heartbeats, because a peer may answer over either socket.
   */
  open(answer: ChannelMessage | null, partOf: Channel | null = null): void {
    if (this.#isClosed) return
    const { limits, clock } = this.#deps
    if (partOf !== null) {
      this.#partOf = partOf
      this.#waiters = partOf.#waiters
      // @guard sockets-of-a-control-channel--rate
      this.#window = partOf.#window
    }
    this.#heartbeats =
      (partOf === null ? null : partOf.#heartbeats) ?? new HeartbeatExchange(limits, clock)
    if (this.#isPaused) this.#heartbeats.pause()
    // @guard heavy-frames-of-a-router--bytes
    this.#decoder.limits = { ...limits, keptBodyBytesMax: messageBodyBytesMax }
    if (answer !== null) this.#write(this.#toHello(answer))
    const { checkEveryMs, writeMsMax = checkEveryMs } = limits
    this.#stopChecks = periodicScheduler.every(Math.min(checkEveryMs, writeMsMax), () =>
      this.#check(),
    )
    this.#read()
  }

  /** @returns false if the channel is closed, or closes now because its peer does not read. */
  send(outgoing: OutboundMessage): boolean {
    return this.#send(outgoing, this.#nextSequence())
  }

  /**
   * Sends a message only if few bytes wait to be sent. The caller may keep or drop a message that
   * was not sent; the channel stays open.
   * @param queuedBytesMax maximum number of waiting bytes including this message, at most
   * `trySendBytesMax`; a larger message is sent only when no bytes wait.
   * @param queue also limits how many messages of its kind may wait; null: only bytes are limited.
   * @returns false if the message was not sent: the limit is reached, or the channel is closed.
   */
  trySend(
    outgoing: OutboundMessage,
    queuedBytesMax: number,
    queue: SendQueueCounter | null = null,
  ): boolean {
    if (this.#isClosed) return false
    const bytesMax = Math.min(queuedBytesMax, this.#deps.limits.trySendBytesMax)
    if (this.#writer.isFull(frameByteLength(outgoing), bytesMax, queue)) return false
    this.#writer.collect()
    return this.#send(outgoing, this.#nextSequence(), queue)
  }

  /**
   * Calls the callback once, in a later turn of the event loop, after the socket has accepted all
   * waiting messages. Callbacks run in the order in which they were added; adding the same function
   * again has no effect. No callback runs after the channel has closed.
   */
  onceWritable(callback: () => void): void {
    if (!this.#isClosed) this.#writer.onceWritable(callback)
  }

  /**
   * Stops reading until `resumeReading`, for a user whose own consumer is slow. The channel buffers
   * at most one more read of the socket; all later data waits at the peer. Calls do not nest.
   *
   * Pauses should be short. During a pause the channel does not answer the peer's heartbeats, and
   * the peer closes the channel after its own timeout. The peer's silence does not count during a
   * pause, and the channel notices only after the pause that the peer has closed it.
   */
  pauseReading(): void {
    if (this.#isClosed || this.#isPaused) return
    this.#isPaused = true
    this.#heartbeats?.pause()
    this.#deps.socket.pause()
  }

  /** Ends the pause; messages are handled from a later turn of the event loop on. */
  resumeReading(): void {
    if (this.#isClosed || !this.#isPaused) return
    this.#isPaused = false
    this.#heartbeats?.resume()
    this.#readInNextTurn()
  }

  /** Time for which the socket has accepted none of the waiting messages, ms; 0 if none waits. */
  get stalledForMs(): number {
    return this.#writer.stalledForMs
  }

  /** Bytes that the socket has not accepted yet. */
  get unsentBytes(): number {
    return this.#writer.waitingBytes
  }

  /** @returns the result of `send`. */
  reply(to: ChannelMessage, outgoing: OutboundMessage): boolean {
    const headers = new Map(outgoing.headers)
    for (const [key, value] of to.headers) {
      if (key >= reflectedHeaderKeys.from && key <= reflectedHeaderKeys.to) headers.set(key, value)
    }
    headers.set(channelHeaderKey.replyFor, encodeInt32(to.sequence))
    return this.send({ ...outgoing, headers })
  }

  /** Sends OpenZiti's generic result message. @returns the result of `send`. */
  replyResult(to: ChannelMessage, isSuccess: boolean, text = ''): boolean {
    const headers = new Map([[channelHeaderKey.resultSuccess, encodeFlag(isSuccess)]])
    return this.reply(to, {
      contentType: channelContentType.result,
      headers,
      body: encodeText(text),
    })
  }

  /**
   * @throws {Error} if the channel closes, no valid reply comes in time, or too many requests wait.
   */
  request(
    outgoing: OutboundMessage,
    timeoutMs = this.#deps.limits.replyTimeoutMs,
  ): Promise<ChannelMessage> {
    if (this.#waiters.size >= this.#deps.limits.repliesWaitingMax) {
      return Promise.reject(new Error('too many requests wait for a reply'))
    }
    const sequence = this.#nextSequence()
    const { promise, resolve, reject } = Promise.withResolvers<ChannelMessage>()
    const timer = setTimeout(() => {
      this.#waiters.delete(sequence)
      reject(new Error(`no reply within ${timeoutMs} ms`))
    }, timeoutMs)
    this.#waiters.set(sequence, { resolve, reject, timer })
    if (!this.#send(outgoing, sequence)) this.#settle(sequence)?.reject(new Error('closed'))
    return promise
  }

  /** Closes the channel. The socket still sends the waiting messages, for at most `LINGER_MS`. */
  end(reason: string): void {
    this.close(reason, null, true)
  }

  /** @param last reply to the hello, or null. @param sendsWaiting false: drops waiting messages. */
  close(reason: string, last: ChannelMessage | null = null, sendsWaiting = last !== null): void {
    if (this.#isClosed) return
    const { socket, onClose } = this.#deps
    if (last !== null) this.#write(this.#toHello(last))
    this.#isClosed = true
    this.#writer.close()
    this.#stopChecks?.()
    for (const timer of [this.#owedTimer, this.#resumeTimer]) clearTimeout(timer ?? undefined)
    // For a socket that was added to another channel, a reply may still arrive over that channel.
    const waiting = this.#partOf === null ? Array.from(this.#waiters.keys()) : []
    for (const sequence of waiting) {
      this.#settle(sequence)?.reject(new Error(`the channel is closed: ${reason}`))
    }
    if (sendsWaiting) {
      socket.end()
      setTimeout(() => socket.destroy(), LINGER_MS).unref()
    } else socket.destroy()
    onClose(reason)
  }

  /**
   * Makes the answer refer to the sequence number of the peer's hello: OpenZiti SDKs number the
   * hello differently and ignore an answer that refers to another number.
   */
  #toHello(answer: ChannelMessage): ChannelMessage {
    const replyFor = encodeInt32(this.#helloSequence)
    return {
      ...answer,
      headers: new Map([...answer.headers, [channelHeaderKey.replyFor, replyFor]]),
    }
  }

  #nextSequence(): number {
    this.#sequence = (this.#sequence + 1) & 0x7f_ff_ff_ff
    return this.#sequence
  }

  #send(
    { contentType: type, headers, body }: OutboundMessage,
    sequence: number,
    queue: SendQueueCounter | null = null,
  ): boolean {
    if (this.#isClosed) return false
    const message = {
      contentType: type,
      sequence,
      headers: this.#stamped(headers ?? noHeaders),
      body: body ?? NO_BODY,
    }
    return this.#write(message, queue)
  }

  /** Adds the due heartbeat stamps, and removes those of another channel in a forwarded message. */
  #stamped(headers: ChannelHeaders): ChannelHeaders {
    const stamps = this.#heartbeats?.takeStamps() ?? null
    const isForeign =
      headers.has(channelHeaderKey.heartbeat) || headers.has(channelHeaderKey.heartbeatResponse)
    if (stamps === null && !isForeign) return headers
    const all = new Map(headers)
    all.delete(channelHeaderKey.heartbeat)
    all.delete(channelHeaderKey.heartbeatResponse)
    for (const [key, value] of stamps ?? []) all.set(key, value)
    return all
  }

  #write(message: ChannelMessage, queue: SendQueueCounter | null = null): boolean {
    // If nothing else waits, a message may exceed the limit, for example a whole data model.
    if (this.#writer.isFull(frameByteLength(message), this.#deps.limits.unsentBytesMax)) {
      this.close('the peer does not read')
      return false
    }
    this.#deps.onFrame?.('out', message)
    this.#writer.write(message, queue)
    return true
  }

  #settle(sequence: number): Waiter | undefined {
    const waiter = this.#waiters.get(sequence)
    if (waiter === undefined) return undefined
    this.#waiters.delete(sequence)
    clearTimeout(waiter.timer)
    return waiter
  }

  #onBytes(chunk: Uint8Array): void {
    if (this.#isClosed) return
    this.#decoder.append(chunk)
    this.#read()
  }

  #read(): void {
    // A handler may call `open`, which calls this; the running loop then continues.
    if (this.#isReading || this.#isStopped()) return
    this.#isReading = true
    const hold = this.#handle()
    this.#isReading = false
    if (this.#isStopped()) return
    if (this.#decoder.fault === null) this.#goOn(hold)
    else this.close(`malformed: ${this.#decoder.fault}`)
  }

  /** @returns why the next message waits; null if no message is complete, or `#isStopped()`. */
  #handle(): Hold | null {
    this.#turnWindow()
    for (let count = 0; count < STRETCH_MESSAGES; count += 1) {
      // The size limits of a hello do not apply to the message after it.
      if (this.#heartbeats === null && this.#hasHello) return 'hello'
      const type = this.#decoder.nextType()
      if (type === null) return null
      const hold = this.#holdOf(type)
      if (hold !== null) return hold
      const message = this.#decoder.take()
      if (message === null) return null
      this.#count(message)
      const pending = this.#onMessage(message)
      if (pending !== null) this.#wait(pending)
      if (this.#isStopped()) return null
    }
    return 'turn'
  }

  /**
   * Whether `#read` must not handle messages now. `#read` is called again after the pause or the
   * current message.
   */
  #isStopped(): boolean {
    return this.#isClosed || this.#isBusy || this.#isPaused
  }

  #wait(pending: Promise<void>): void {
    this.#isBusy = true
    // @guard heavy-frames-of-a-router--pause
    this.#deps.socket.pause()
    const goOn = (): void => {
      this.#isBusy = false
      this.#read()
    }
    pending.then(goOn, (error: Error) => this.close(error.message))
  }

  /**
   * Why a message of this type must wait; null if it may be handled. After the hello, only data
   * messages are exempt from the rate limits and from waiting for a peer that does not read.
   */
  #holdOf(type: number): Hold | null {
    if (this.#heartbeats === null) return null
    // @guard control-flood-beside-data
    return this.#deps.limits.unmeteredTypes?.has(type) === true ? null : this.#meteredHold()
  }

  #meteredHold(): Hold | null {
    if (this.#isPeerIdle()) return 'drain'
    const { limits } = this.#deps
    const isOver =
      this.#window.bytes > limits.bytesPerSecondMax ||
      this.#window.messages >= limits.messagesPerSecondMax
    return isOver ? 'window' : null
  }

  /**
   * Whether the peer has left too many sent bytes unread, so that this channel must not read from
   * it. On a channel for data, the threshold is higher than the bytes that data may queue;
   * otherwise two peers that send each other data could wait for each other forever.
   */
  #isPeerIdle(): boolean {
    const { socket, limits } = this.#deps
    if (!socket.writableNeedDrain) return false
    if (limits.unmeteredTypes === undefined) return true
    return socket.writableLength > (limits.trySendBytesMax + limits.unsentBytesMax) / 2
  }

  #turnWindow(): void {
    const nowMs = this.#deps.clock.monotonicMs()
    if (nowMs - this.#window.sinceMs < RATE_WINDOW_MS) return
    Object.assign(this.#window, { sinceMs: nowMs, messages: 0, bytes: 0 } satisfies RateWindow)
  }

  #count({ contentType: type, leftOutBytes = 0 }: ChannelMessage): void {
    if (this.#heartbeats === null) return
    // A message whose body was skipped counts; otherwise a peer could send such messages without
    // limit.
    if (leftOutBytes === 0 && this.#deps.limits.unmeteredTypes?.has(type) === true) return
    this.#window.messages += 1
    this.#window.bytes += this.#decoder.takenBytes
  }

  /**
   * Pauses the socket while the decoder may contain complete messages, because its buffer could
   * otherwise grow without limit; resumes the socket if nothing prevents reading.
   */
  #goOn(hold: Hold | null): void {
    const { socket, limits } = this.#deps
    const isMetered = this.#heartbeats !== null && limits.unmeteredTypes === undefined
    const all = hold ?? (isMetered ? this.#meteredHold() : null)
    if (all === null) {
      socket.resume()
      return
    }
    socket.pause()
    // For `hello`, `open` calls `#read`; for `drain`, the `drain` event does.
    if (all === 'turn') this.#readInNextTurn()
    else if (all === 'window') {
      this.#resumeTimer ??= setTimeout(() => this.#onWindowOver(), RATE_WINDOW_MS)
    }
  }

  #onWindowOver(): void {
    this.#resumeTimer = null
    this.#read()
  }

  #readInNextTurn(): void {
    if (this.#isTurnDue) return
    this.#isTurnDue = true
    setImmediate(() => {
      this.#isTurnDue = false
      this.#read()
    })
  }

  /**
   * @returns a promise that resolves when the message is handled; null if it is handled already.
   */
  #onMessage(message: ChannelMessage): Promise<void> | null {
    this.#deps.onFrame?.('in', message)
    if (!this.#hasHello) {
      this.#hasHello = true
      this.#helloSequence = message.sequence
      this.#deps.onHello(message)
      return null
    }
    this.#heartbeats?.onMessage(message)
    if (this.#heartbeats?.isOwed === true) this.#returnStampSoon()
    if (message.contentType === channelContentType.heartbeat) return null
    if (message.contentType === channelContentType.latency) {
      this.replyResult(message, true)
      return null
    }
    const { begin = runToItsEnd } = this.#deps
    return begin(() => this.#work(message))
  }

  #work(message: ChannelMessage): Iterator<void> | null {
    if (this.#isClosed) return null
    const replyFor = readInt32(message.headers, channelHeaderKey.replyFor)
    const waiter = replyFor === null ? undefined : this.#settle(replyFor)
    // @guard heavy-frames-of-a-controller
    const fault = messageRefusalReason(message)
    if (fault !== null) this.#refuse(message, fault, waiter)
    else if (waiter === undefined) {
      const steps = this.#deps.onMessage(message)
      return steps === null ? null : this.#whileOpen(steps)
    } else waiter.resolve(message)
    return null
  }

  *#whileOpen(steps: Iterator<void>): Generator<void, void> {
    while (!this.#isClosed && steps.next().done === false) yield
  }

  /**
   * Refuses one message. A single refusal may be a mistake, so only a second refusal within a
   * minute closes the channel. A malformed message closes the channel immediately unless it is the
   * reply to a pending request.
   */
  #refuse(message: ChannelMessage, fault: string, waiter: Waiter | undefined): void {
    const { clock, onRefused } = this.#deps
    const text = `message ${message.contentType} is refused: ${fault}`
    const nowMs = clock.monotonicMs()
    // @guard heavy-frames-of-a-router--again
    const isAgain = nowMs - this.#refusedMs < REFUSED_AGAIN_MS
    this.#refusedMs = nowMs
    onRefused?.(message.contentType, fault)
    waiter?.reject(new Error(text))
    if (isAgain || (fault === MALFORMED_BODY_FAULT && waiter === undefined)) this.close(text)
    else if (!message.headers.has(channelHeaderKey.replyFor)) this.replyResult(message, false, text)
  }

  #returnStampSoon(): void {
    this.#owedTimer ??= setTimeout(() => {
      this.#owedTimer = null
      if (this.#heartbeats?.isOwed === true)
        this.send({ contentType: channelContentType.heartbeat })
    }, OWED_MS)
  }

  #check(): void {
    const { writeMsMax = Infinity } = this.#deps.limits
    if (this.#heartbeats?.isSilent === true) this.close('no answer to heartbeats')
    else if (this.#writer.stalledForMs > writeMsMax) {
      this.close(`a message was not sent within ${writeMsMax} ms`)
    } else if (this.#heartbeats?.isStampDue === true) {
      this.send({ contentType: channelContentType.heartbeat })
    }
  }
}

function runToItsEnd(work: () => Iterator<void> | null): null {
  const steps = work()
  while (steps !== null && steps.next().done !== true);
  return null
}
