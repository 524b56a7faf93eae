/** Limits and timeouts of a tunnel without a router. */
export const tunnelLimits = {
  /** Maximum identities in one process. */
  identitiesMax: 16,
  /** Interval for checking whether the certificate is due. */
  certificateJudgedEveryMs: 10 * 60_000,
  /** Delay after a failed renewal of the certificate. */
  renewedAgainMs: 60_000,
  /** Records per page that is requested from a controller. */
  recordsPerPage: 500,
  /**
   * Maximum number of known controllers, of known edge routers, and of addresses for each of them.
   */
  controllersMax: 64,
  edgeRoutersMax: 64,
  addressesPerRouterMax: 4,
  /**
   * Interval of polls for service updates, and interval at which everything else is read again.
   */
  askedEveryMs: 5000,
  refreshedEveryMs: 60_000,
  /** Delay before a retry; it grows from the first value to the second. Half of it is random. */
  askAgainMsMin: 500,
  askAgainMsMax: 30_000,
  /**
   * Delay before an edge router that failed or disconnected is dialed again; it grows in the same
   * way.
   */
  redialMsMin: 500,
  redialMsMax: 30_000,
  /** Timeout from the first packet to the reply to the hello. */
  helloMs: 10_000,
  /**
   * Interval of latency probes; and the time without a response after which the channel to an edge
   * router is closed.
   */
  probedEveryMs: 10_000,
  probeMs: 20_000,
  /** Number of edge routers at which one service is hosted. */
  hostedAtMax: 3,
  /** Timeout for the response of an edge router to a bind request. */
  bindMs: 10_000,
  /**
   * Delay before a refused bind request is retried; it grows from the first value to the second.
   */
  bindAgainMsMin: 1000,
  bindAgainMsMax: 60_000,
  /** Interval for checking whether postponed bind requests are due. */
  hostsJudgedEveryMs: 1000,
  /** Maximum concurrent bind requests. */
  hostChangesAtOnceMax: 16,
  /** Maximum pending dials of clients to hosted services, per edge router. */
  dialsOfRouterMax: 1024,
  dialMs: 5000,
  /** Maximum circuits per edge router. */
  circuitsPerRouterMax: 16_384,
  /** A circuit that is not opened within this time ends. */
  openedWithinMs: 10_000,
  /** Maximum concurrent dials of one identity. */
  dialsMax: 128,
  /** Maximum bytes buffered by all circuits; divided fairly among services. */
  bufferedBytesMax: 256 * 1024 * 1024,
  /** Services of an identity that have separate metrics. */
  measuredServicesMax: 500,
  /** Time for a request for metrics, for its answer, and for the next one on its connection. */
  metricsReadMs: 5000,
  metricsWriteMs: 10_000,
  metricsIdleMs: 60_000,
  /** Maximum logged characters of a refusal. */
  reasonCharactersMax: 512,
  /** Maximum duration of a clean stop. */
  stopMsMax: 5000,
  /** Timeout for ending the session at a stop; after that, the session expires. */
  logOutMs: 2000,
} as const
