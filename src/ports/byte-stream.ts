/**
 * Bytes that are sent in pieces while they are produced, no faster than the client reads them.
 */
export interface ByteStream {
  /**
   * When the reader has disconnected, the server calls `return` of the iterator, even while the
   * next piece is pending; the iterator must then end.
   */
  readonly chunks: AsyncIterable<Uint8Array>
  /**
   * Aborted when the producer decides that its reader takes too long. Without this signal, the
   * server disconnects a reader that stalls longer than any response may take.
   */
  readonly giveUp?: AbortSignal
}
