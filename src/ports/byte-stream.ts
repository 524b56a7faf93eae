/** Bytes that are sent piece by piece as they are made, no faster than they are read. */
export interface ByteStream {
  /**
   * Its iterator is returned as soon as it is known that nobody reads any more, even while the next
   * piece is waited for.
   */
  readonly chunks: AsyncIterable<Uint8Array>
  /**
   * Signal of a maker that judges how long its reader may take: aborted when that was too long.
   * Without it, whoever reads nothing for as long as any answer may stall is cut off.
   */
  readonly giveUp?: AbortSignal
}
