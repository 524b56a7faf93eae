import type { Duplex } from 'node:stream'

import type { Clock } from '../lib/clock.ts'
import { type ChannelMessage, encodeFrame, encodeFrameHead } from './frame.ts'

/** Copying a smaller body is cheaper than a separate write. */
const COPIED_BODY_BYTES_MAX = 4096

/**
 * Messages of one kind on one channel: limits how many may remain from earlier turns. Messages of
 * the current turn are limited by their bytes only.
 */
export class SendQueue {
  readonly messagesMax: number
  /** Written messages that the socket has not taken yet. */
  waiting = 0
  /** Messages that were waiting when the turn began. */
  #leftOver = 0
  #turn = -1

  constructor(messagesMax: number) {
    this.messagesMax = messagesMax
  }

  /** @param turn of the writer. */
  isFull(turn: number): boolean {
    if (this.#turn !== turn) {
      this.#turn = turn
      this.#leftOver = this.waiting
    }
    return Math.min(this.#leftOver, this.waiting) >= this.messagesMax
  }
}

/**
 * Writes the frames of one channel to its socket and calls waiting callers when they are written.
 */
export class FrameWriter {
  readonly #socket: Duplex
  readonly #clock: Pick<Clock, 'monotonicMs'>
  /** A set, so that its size is bounded by the number of users, however often one of them asks. */
  readonly #waiters = new Set<() => void>()
  #isCollecting = false
  #soon: NodeJS.Immediate | null = null
  /** Incremented for each turn in which a message was collected. */
  #turn = 0
  /** Number of messages that the socket has not taken, and when it last took one. */
  #untaken = 0
  #takenMs = 0

  constructor(socket: Duplex, clock: Pick<Clock, 'monotonicMs'>) {
    this.#socket = socket
    this.#clock = clock
  }

  /** How long the first waiting message has waited, ms; 0 if none waits. */
  get stalledForMs(): number {
    return this.#untaken === 0 ? 0 : this.#clock.monotonicMs() - this.#takenMs
  }

  /** Bytes that the socket has not taken. */
  get waitingBytes(): number {
    return this.#socket.writableLength
  }

  /** Whether `bytes` more would exceed `bytesMax`; a single frame may be larger. */
  isFull(bytes: number, bytesMax: number, queue: SendQueue | null = null): boolean {
    if (this.waitingBytes === 0) return false
    return this.waitingBytes + bytes > bytesMax || queue?.isFull(this.#turn) === true
  }

  /** Writes a large body without a copy; the caller must not change it until it is written. */
  write(message: ChannelMessage, queue: SendQueue | null = null): void {
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

  #onTakenOf(queue: SendQueue): () => void {
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

  /** Collects the messages of this turn; they go to the socket in one write at its end. */
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

  /** Never calls it synchronously, and not after `close`. */
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

  // `drain` is not enough: it fires only after the buffer has exceeded the high-water mark.
  readonly #onWritten = (): void => {
    if (this.#waiters.size > 0 && this.waitingBytes === 0) this.#call()
  }

  #callSoon(): void {
    this.#soon ??= setImmediate(() => {
      this.#soon = null
      this.#onWritten()
    })
  }

  /** Waiters that were not called for lack of room stay ahead of those that ask again. */
  #call(): void {
    for (const waiter of Array.from(this.#waiters)) {
      if (this.#socket.writableNeedDrain) return
      if (this.#waiters.delete(waiter)) waiter()
    }
    if (this.#waiters.size > 0 && this.waitingBytes === 0) this.#callSoon()
  }
}
