/** Circuits and their ends. */
export const circuitLimits = {
  /** Ends look for what is due so often. */
  ticksEveryMs: 100,
  /**
   * Bytes that wait at a link with a payload, and with anything else: acknowledgements get through
   * where payloads wait or are dropped.
   */
  payloadsQueuedBytesMax: 1024 * 1024,
  acknowledgementsQueuedBytesMax: 2 * 1024 * 1024,
  /** Bytes of all circuits that their ends in this router keep; those who dial share them. */
  bufferedBytesMax: 512 * 1024 * 1024,
  /**
   * Payloads of one end of a circuit: on their way and not acknowledged; waiting while nothing may
   * be sent, which ends a circuit whose application does not wait; ahead of the one that is
   * delivered next, beyond which they are dropped.
   */
  xgressInFlightMax: 8192,
  xgressUnsentMax: 8192,
  xgressUnsentBytesMax: 16 * 1024 * 1024,
  xgressAheadMax: 16_384,
  /** A payload that comes in chunks; also bounded by rxBufferSize. */
  xgressJoinedBytesMax: 4 * 1024 * 1024,
} as const
