/** Limits of circuits and their ends. */
export const circuitLimits = {
  /** Interval of the ticks for retransmissions and timeouts. */
  ticksEveryMs: 100,
  /**
   * Maximum bytes queued at a link for payloads, and for all other frames. Acknowledgments have
   * more space, so they get through when payloads wait or are dropped.
   */
  payloadsQueuedBytesMax: 1024 * 1024,
  acknowledgementsQueuedBytesMax: 2 * 1024 * 1024,
  /**
   * Maximum bytes buffered for all circuit ends of this router, shared by the dialing identities.
   */
  bufferedBytesMax: 512 * 1024 * 1024,
  /**
   * Maximum payloads of one end: sent but not acknowledged; unsent, beyond which the circuit ends
   * because its application ignores backpressure; received ahead of the next one in order, beyond
   * which payloads are dropped.
   */
  xgressInFlightMax: 8192,
  xgressUnsentMax: 8192,
  xgressUnsentBytesMax: 16 * 1024 * 1024,
  xgressAheadMax: 16_384,
  /** Maximum bytes of a payload that arrives in chunks; also bounded by rxBufferSize. */
  xgressJoinedBytesMax: 4 * 1024 * 1024,
} as const
