/** Limits of circuits and their endpoints. */
export const circuitLimits = {
  /** Interval of the ticks for retransmissions and timeouts. */
  ticksEveryMs: 100,
  /**
   * Maximum bytes queued at a link up to which a payload may be added. Acknowledgments have more
   * space, so they get through when payloads wait or are dropped.
   */
  payloadsQueuedBytesMax: 1024 * 1024,
  /** Maximum bytes queued at a link up to which an acknowledgment may be added. */
  acknowledgementsQueuedBytesMax: 2 * 1024 * 1024,
  /**
   * Maximum bytes buffered for all circuit endpoints of this router, shared fairly by the dialing
   * identities.
   */
  bufferedBytesMax: 512 * 1024 * 1024,
  /** Maximum payloads that one endpoint has sent and that are not acknowledged. */
  xgressInFlightMax: 8192,
  /**
   * Maximum payloads that one endpoint has not sent yet. Above that, the circuit ends, because its
   * application ignores backpressure.
   */
  xgressUnsentMax: 8192,
  /** Maximum bytes that one endpoint has not sent yet; above that, the circuit ends. */
  xgressUnsentBytesMax: 16 * 1024 * 1024,
  /** Maximum payloads received out of order at one endpoint. Further ones are dropped. */
  xgressAheadMax: 16_384,
  /** Maximum bytes of a payload that arrives in chunks; also bounded by rxBufferSize. */
  xgressJoinedBytesMax: 4 * 1024 * 1024,
} as const
