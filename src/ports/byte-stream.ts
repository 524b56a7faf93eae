/** Bytes that are sent in pieces while they are produced, no faster than the reader takes them. */
export interface ByteStream {
  /**
   * The iterator returns as soon as the reader has disconnected, even while the next piece is
   * pending.
   */
  readonly chunks: AsyncIterable<Uint8Array>
  /**
   * Aborted when the producer decides that its reader takes too long. Without it, a reader is
   * disconnected that stalls longer than any answer may.
   */
  readonly giveUp?: AbortSignal
}
