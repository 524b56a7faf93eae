import type { Duplex } from 'node:stream'

import type { Clock } from '../lib/clock.ts'
import { type ChannelMessage, encodeFrame, encodeFrameHead } from './frame.ts'

/** A smaller body is copied, because copying is cheaper than a separate write. */
const COPIED_BODY_BYTES_MAX = 4096

/**
 * Counts the waiting messages of one kind on one channel. The maximum applies only to messages that
 * already waited when the current turn of the event loop began; messages of the current turn are
 * limited only by their bytes.
 */
export class SendQueueCounter {
  readonly messagesMax: number
  /** Written messages that the socket has not accepted yet. */
  waiting = 0
  /** Number of messages that were waiting when the current turn began. */
  #leftOver = 0
  #turn = -1

  constructor(messagesMax: number) {
    this.messagesMax = messagesMax
  }

  /** @param turn the number of the current turn, from {@link FrameWriter}. */
  isFull(turn: number): boolean {
    if (this.#turn !== turn) {
      this.#turn = turn
      this.#leftOver = this.waiting
    }
    return Math.min(this.#leftOver, this.waiting) >= this.messagesMax
  }
}

/**
 * Writes the frames of one channel to its socket, and calls the callbacks of `onceWritable` when
 * the socket can accept more.
 */
export class FrameWriter {
  readonly #socket: Duplex
  readonly #clock: Pick<Clock, 'monotonicMs'>
  /** A set, so that each user has at most one entry, however often it calls `onceWritable`. */
  readonly #waiters = new Set<() => void>()
  #isCollecting = false
  #soon: NodeJS.Immediate | null = null
  /** Incremented for each turn in which a message was collected. */
  #turn = 0
  /**
   * Number of messages that the socket has not accepted. `#takenMs` is the time at which the socket
   * last accepted one, or at which the first of them was written.
   */
  #untaken = 0
  #takenMs = 0

  constructor(socket: Duplex, clock: Pick<Clock, 'monotonicMs'>) {
    this.#socket = socket
    this.#clock = clock
  }

  /** Time for which the socket has accepted none of the waiting messages, ms; 0 if none waits. */
  get stalledForMs(): number {
    return this.#untaken === 0 ? 0 : this.#clock.monotonicMs() - this.#takenMs
  }

  /** Bytes that the socket has not accepted. */
  get waitingBytes(): number {
    return this.#socket.writableLength
  }

  /**
   * Whether `bytes` more would exceed `bytesMax`. If nothing waits, a single frame may be larger.
   */
  isFull(bytes: number, bytesMax: number, queue: SendQueueCounter | null = null): boolean {
    if (this.waitingBytes === 0) return false
    return this.waitingBytes + bytes > bytesMax || queue?.isFull(this.#turn) === true
  }

  /**
   * Writes a message. A large body is not copied; the caller must not change it until it is
   * written.
   */
  write(message: ChannelMessage, queue: SendQueueCounter | null = null): void {
    const socket = this.#socket
    if (this.#untaken === 0) this.#takenMs = this.#clock.monotonicMs()
    this.#untaken += 1
    if (queue !== null) queue.waiting += 1
    const onTaken = queue === null ? this.#onTaken : this.#onTakenOf(queue)
    if (message.body.length < COPIED_BODY_BYTES_MAX) {
      socket.write(encodeFrame(message), onTaken)
      return
    }
    socket.cork()
    socket.write(encodeFrameHead(message))
    socket.write(message.body, onTaken)
    socket.uncork()
  }

  #onTakenOf(queue: SendQueueCounter): () => void {
    return () => {
      queue.waiting -= 1
      this.#onTaken()
    }
  }

  readonly #onTaken = (): void => {
    this.#untaken -= 1
    this.#takenMs = this.#clock.monotonicMs()
    this.#onWritten()
  }

  /**
   * Collects the messages of the current turn of the event loop, and writes them to the socket
   * together at its end.
   */
  collect(): void {
    if (this.#isCollecting) return
    this.#isCollecting = true
    this.#turn += 1
    this.#socket.cork()
    process.nextTick(() => this.#flush())
  }

  #flush(): void {
    if (!this.#isCollecting) return
    this.#isCollecting = false
    this.#socket.uncork()
  }

  /**
   * Calls the callback in a later turn of the event loop, never synchronously, and not after
   * `close`.
   */
  onceWritable(callback: () => void): void {
    this.#waiters.add(callback)
    if (this.waitingBytes === 0) this.#callSoon()
  }

  /** Writes the collected messages before the socket closes. */
  close(): void {
    this.#flush()
    this.#waiters.clear()
    if (this.#soon !== null) clearImmediate(this.#soon)
    this.#soon = null
  }

  // The `drain` event cannot be used here: it fires only after the buffer has exceeded the
  // high-water mark.
  readonly #onWritten = (): void => {
    if (this.#waiters.size > 0 && this.waitingBytes === 0) this.#call()
  }

  #callSoon(): void {
    this.#soon ??= setImmediate(() => {
      this.#soon = null
      this.#onWritten()
    })
  }

  /**
   * Calls the callbacks until the socket is full. The remaining callbacks stay ahead of those that
   * are added later.
   */
  #call(): void {
    for (const waiter of Array.from(this.#waiters)) {
      if (this.#socket.writableNeedDrain) return
      if (this.#waiters.delete(waiter)) waiter()
    }
    if (this.#waiters.size > 0 && this.waitingBytes === 0) this.#callSoon()
  }
}
