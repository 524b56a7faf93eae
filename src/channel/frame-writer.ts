import type { Duplex } from 'node:stream'

import { type ChannelMessage, encodeFrame, encodeHead } from './frame.ts'

/** A smaller one is cheaper to copy than to write by itself. */
const COPIED_BODY_BYTES_MAX = 4096

/** Writes the frames of one channel to its socket, and calls who waits until they have gone. */
export class FrameWriter {
  readonly #socket: Duplex
  /** A set, so that it is as long as there are users, however often one asks. */
  readonly #waiters = new Set<() => void>()
  #isCollecting = false
  #soon: NodeJS.Immediate | null = null

  constructor(socket: Duplex) {
    this.#socket = socket
  }

  /** Bytes that the socket has not taken. */
  get waitingBytes(): number {
    return this.#socket.writableLength
  }

  /** Whether with so many bytes more than `bytesMax` would wait; one frame alone may be larger. */
  isFull(bytes: number, bytesMax: number): boolean {
    return this.waitingBytes > 0 && this.waitingBytes + bytes > bytesMax
  }

  /** Writes a large body as it is, without a copy: it is not to change until it has gone. */
  write(message: ChannelMessage): void {
    const socket = this.#socket
    if (message.body.length < COPIED_BODY_BYTES_MAX) {
      socket.write(encodeFrame(message), this.#onWritten)
      return
    }
    socket.cork()
    socket.write(encodeHead(message))
    socket.write(message.body, this.#onWritten)
    socket.uncork()
  }

  /** Collects what is written in this turn: it goes to the socket at its end, in one piece. */
  collect(): void {
    if (this.#isCollecting) return
    this.#isCollecting = true
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
