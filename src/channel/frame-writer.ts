import type { Duplex } from 'node:stream'

/** Writes the frames of one channel to its socket, and calls who waits until they have gone. */
export class FrameWriter {
  readonly #socket: Duplex
  /** A set, so that it is as long as there are users, however often one asks. */
  readonly #waiters = new Set<() => void>()
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

  write(frame: Uint8Array): void {
    this.#socket.write(frame, this.#onWritten)
  }

  /** Never calls it at once, and not after `close`. */
  onceWritable(callback: () => void): void {
    this.#waiters.add(callback)
    if (this.waitingBytes === 0) this.#callSoon()
  }

  close(): void {
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
