/** Limits of circuits and their endpoints. */
export const circuitLimits = {
  /** Interval at which endpoints check for retransmissions and timeouts. */
  ticksEveryMs: 100,
  /**
   * If a link has this many bytes in its queue, payloads wait. Acknowledgments have a higher limit,
   * so that they are sent while payloads wait or are dropped.
   */
  payloadsQueuedBytesMax: 1024 * 1024,
  /** If a link has this many bytes in its queue, acknowledgments are dropped. */
  acknowledgementsQueuedBytesMax: 2 * 1024 * 1024,
  /**
   * Maximum bytes that all circuit endpoints of this router buffer; dialing identities share the
   * limit fairly.
   */
  bufferedBytesMax: 512 * 1024 * 1024,
  /** Maximum payloads in flight of one endpoint: sent and not acknowledged. */
  xgressInFlightMax: 8192,
  /**
   * Maximum payloads that wait to be sent at one endpoint. Above that, the circuit ends, because
   * the application ignores back-pressure.
   */
  xgressUnsentMax: 8192,
  /** Maximum bytes that wait to be sent at one endpoint; above that, the circuit ends. */
  xgressUnsentBytesMax: 16 * 1024 * 1024,
  /**
   * Maximum distance, in payloads, between the next expected payload of an endpoint and one that
   * arrives out of order; a payload further ahead is dropped.
   */
  xgressAheadMax: 16_384,
  /**
   * Maximum bytes of a payload that arrives in chunks; the option rxBufferSize may set a lower
   * maximum.
   */
  xgressJoinedBytesMax: 4 * 1024 * 1024,
} as const
