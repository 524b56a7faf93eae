/** The writing half of a gRPC stream: what this room needs of it. */
interface FrameWriter {
  write(frame: Buffer, written: () => void): boolean
}

/**
 * Counts the bytes handed to a stream and not yet taken by its connection, and refuses beyond a
 * cap: a slow peer costs bounded memory, and its sender learns at once.
 */
export class OutboundStream {
  readonly #writer: FrameWriter
  #queuedBytes = 0

  constructor(writer: FrameWriter) {
    this.#writer = writer
  }

  get queuedBytes(): number {
    return this.#queuedBytes
  }

  /**
   * @returns false when the frame does not fit under `bytesMax` beside what waits; nothing was sent
   * then.
   */
  write(frame: Uint8Array, bytesMax: number): boolean {
    if (this.#queuedBytes + frame.length > bytesMax) return false
    this.#queuedBytes += frame.length
    this.#writer.write(Buffer.from(frame.buffer, frame.byteOffset, frame.length), () => {
      this.#queuedBytes -= frame.length
    })
    return true
  }
}
