/** The part of a gRPC stream that is used for writing. */
interface FrameWriter {
  write(frame: Buffer, written: () => void): boolean
}

/**
 * Counts bytes that were written to a stream but that its connection has not accepted yet, and
 * refuses frames beyond a limit. A slow peer therefore occupies limited memory, and the sender
 * immediately learns that a frame was refused.
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
   * Writes a frame.
   * @returns false when the frame and the queued bytes together exceed `bytesMax`; the frame was
   * then not sent.
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
