/** Limits and timeouts of a tunnel without a router. */
export const tunnelLimits = {
  /** Identities in one process. */
  identitiesMax: 16,
  /** Records in one page requested from a controller. */
  recordsPerPage: 500,
  /** Maximum known controllers, known edge routers, and addresses of each. */
  controllersMax: 64,
  edgeRoutersMax: 64,
  addressesPerRouterMax: 4,
  /** Interval for polling service updates, and for refreshing everything else. */
  askedEveryMs: 5000,
  refreshedEveryMs: 60_000,
  /** Delay before a retry, which grows from the first to the second value; half of it is random. */
  askAgainMsMin: 500,
  askAgainMsMax: 30_000,
  /** Delay before an edge router that failed or disconnected is redialed; grows in the same way. */
  redialMsMin: 500,
  redialMsMax: 30_000,
  /** Time from the first packet to the answer to the hello. */
  helloMs: 10_000,
  /**
   * Interval of latency probes, and the silence after which the channel to an edge router is
   * closed.
   */
  probedEveryMs: 10_000,
  probeMs: 20_000,
  /** Number of edge routers at which one service is hosted. */
  hostedAtMax: 3,
  /** Timeout for the answer of an edge router to a bind request. */
  bindMs: 10_000,
  /** Delay before a refused bind is retried, growing from the first to the second value. */
  bindAgainMsMin: 1000,
  bindAgainMsMax: 60_000,
  /** Interval of retries of postponed binds. */
  hostsJudgedEveryMs: 1000,
  /** Concurrent bind requests. */
  hostChangesAtOnceMax: 16,
  /** Pending dials of clients to hosted services, per edge router. */
  dialsOfRouterMax: 1024,
  dialMs: 5000,
  /** Circuits per edge router. */
  circuitsPerRouterMax: 16_384,
  /** A circuit that is not opened within this time ends. */
  openedWithinMs: 10_000,
  /** Concurrent dials of one identity. */
  dialsMax: 128,
  /** Bytes buffered by all circuits; services share them. */
  bufferedBytesMax: 256 * 1024 * 1024,
  /** Services of an identity that have separate metrics. */
  measuredServicesMax: 500,
  /** Time for a request for metrics, for its answer, and for the next one on its connection. */
  metricsReadMs: 5000,
  metricsWriteMs: 10_000,
  metricsIdleMs: 60_000,
  /** Logged length of a refusal. */
  reasonCharactersMax: 512,
  /** Maximum duration of a clean stop. */
  stopMsMax: 5000,
  /** Timeout for ending the session at a stop; after that, the session expires. */
  logOutMs: 2000,
} as const
