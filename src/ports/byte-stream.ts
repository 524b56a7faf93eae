/** Bytes that are sent piece by piece as they are made, no faster than they are read. */
export interface ByteStream {
  /**
   * Its iterator is returned as soon as it is known that nobody reads any more, even while the next
   * piece is waited for.
   */
  readonly chunks: AsyncIterable<Uint8Array>
  /**
   * Aborted when the producer decides that its reader takes too long. Without it, a reader that
   * stalls longer than any answer may is disconnected.
   */
  readonly giveUp?: AbortSignal
}
