import type { Duplex } from 'node:stream'

import type { Clock } from '../lib/clock.ts'
import { type ChannelMessage, encodeFrame, encodeHead } from './frame.ts'

/** A smaller one is cheaper to copy than to write by itself. */
const COPIED_BODY_BYTES_MAX = 4096

/**
 * Messages of one kind at one channel: how many may be left over from earlier turns. What comes in
 * one turn is bounded by its bytes.
 */
export class SendQueue {
  readonly messagesMax: number
  /** Written, and not taken by the socket yet. */
  waiting = 0
  /** Messages that waited when the turn began. */
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

/** Writes the frames of one channel to its socket, and calls who waits until they have gone. */
export class FrameWriter {
  readonly #socket: Duplex
  readonly #clock: Pick<Clock, 'monotonicMs'>
  /** A set, so that it is as long as there are users, however often one asks. */
  readonly #waiters = new Set<() => void>()
  #isCollecting = false
  #soon: NodeJS.Immediate | null = null
  /** Grows with each turn in which something was collected. */
  #turn = 0
  /** Messages that the socket has not taken, and when it took the last one before them. */
  #untaken = 0
  #takenMs = 0

  constructor(socket: Duplex, clock: Pick<Clock, 'monotonicMs'>) {
    this.#socket = socket
    this.#clock = clock
  }

  /** How long the message whose turn it is has not been taken, ms; 0: none waits. */
  get stalledForMs(): number {
    return this.#untaken === 0 ? 0 : this.#clock.monotonicMs() - this.#takenMs
  }

  /** Bytes that the socket has not taken. */
  get waitingBytes(): number {
    return this.#socket.writableLength
  }

  /** Whether with so many bytes more than `bytesMax` would wait; one frame alone may be larger. */
  isFull(bytes: number, bytesMax: number, queue: SendQueue | null = null): boolean {
    if (this.waitingBytes === 0) return false
    return this.waitingBytes + bytes > bytesMax || queue?.isFull(this.#turn) === true
  }

  /** Writes a large body as it is, without a copy: it is not to change until it has gone. */
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
    socket.write(encodeHead(message))
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

  /** Collects what is written in this turn: it goes to the socket at its end, in one piece. */
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

  /** Never calls it at once, and not after `close`. */
  onceWritable(callback: () => void): void {
    this.#waiters.add(callback)
    if (this.waitingBytes === 0) this.#callSoon()
  }

  /** Hands on what was collected, before the socket ends. */
  close(): void {
    this.#flush()
    this.#waiters.clear()
    if (this.#soon !== null) clearImmediate(this.#soon)
    this.#soon = null
  }

  // `drain` does not do: it comes only after more has waited than the socket asks to be given.
  readonly #onWritten = (): void => {
    if (this.#waiters.size > 0 && this.waitingBytes === 0) this.#call()
  }

  #callSoon(): void {
    this.#soon ??= setImmediate(() => {
      this.#soon = null
      this.#onWritten()
    })
  }

  /** Waiters that find no room any more stay in front of those that come back. */
  #call(): void {
    for (const waiter of Array.from(this.#waiters)) {
      if (this.#socket.writableNeedDrain) return
      if (this.#waiters.delete(waiter)) waiter()
    }
    if (this.#waiters.size > 0 && this.waitingBytes === 0) this.#callSoon()
  }
}
