/** Limits and timeouts of a tunnel without a router. */
export const tunnelLimits = {
  /** Maximum identities in one process. */
  identitiesMax: 16,
  /** Interval for checking whether renewal of the certificate is due. */
  certificateJudgedEveryMs: 10 * 60_000,
  /** Delay after a failed renewal of the certificate before it is retried. */
  renewedAgainMs: 60_000,
  /** Records per page that is requested from a controller. */
  recordsPerPage: 500,
  /** Maximum controller addresses of one identity that are used; further ones are ignored. */
  controllersMax: 64,
  /** Maximum edge routers of one identity that are used; further ones are ignored. */
  edgeRoutersMax: 64,
  /** Maximum addresses of one edge router that are used; further ones are ignored. */
  addressesPerRouterMax: 4,
  /** Interval of polls for service updates. */
  askedEveryMs: 5000,
  /** Age at which data other than services, such as edge routers and controllers, is read again. */
  refreshedEveryMs: 60_000,
  /**
   * Half of the first delay before failed requests to the controllers are retried. The delay
   * doubles up to `askAgainMsMax`, and half of it is random.
   */
  askAgainMsMin: 500,
  /** Maximum delay before a failed request to the controllers is retried. */
  askAgainMsMax: 30_000,
  /**
   * First delay before an edge router that failed or disconnected is dialed again; it doubles up to
   * `redialMsMax`, and half of it is random.
   */
  redialMsMin: 500,
  /** Maximum delay before an edge router is dialed again. */
  redialMsMax: 30_000,
  /**
   * Timeout for opening a channel to an edge router: from the start of the dial to the reply to the
   * hello message.
   */
  helloMs: 10_000,
  /** Interval of latency probes to each edge router. */
  probedEveryMs: 10_000,
  /**
   * Timeout for the reply to a latency probe; after that, the channel to the edge router is
   * closed.
   */
  probeMs: 20_000,
  /** Maximum edge routers at which one terminator of a hosted service exists. */
  hostedAtMax: 3,
  /** Timeout for the response of an edge router to a bind request. */
  bindMs: 10_000,
  /**
   * First delay before a failed attempt to host a service is repeated, for example after a refused
   * bind request; it doubles up to `bindAgainMsMax`, and half of it is random.
   */
  bindAgainMsMin: 1000,
  /** Maximum delay before a failed attempt to host a service is repeated. */
  bindAgainMsMax: 60_000,
  /** Interval for checking whether postponed bind requests are due. */
  hostsJudgedEveryMs: 1000,
  /** Maximum concurrent bind requests of one identity. */
  hostChangesAtOnceMax: 16,
  /** Maximum pending dials of clients to the services of one identity, per edge router. */
  dialsOfRouterMax: 1024,
  /** Timeout for the dial of a client to a hosted service. */
  dialMs: 5000,
  /** Maximum circuits of one identity per edge router. */
  circuitsPerRouterMax: 16_384,
  /** A circuit that is not opened within this time ends. */
  openedWithinMs: 10_000,
  /** Maximum concurrent dials of services by one identity. */
  dialsMax: 128,
  /**
   * Maximum bytes that the circuits of one identity buffer; shared fairly among the services that
   * this identity dials and the identities that dial its services.
   */
  bufferedBytesMax: 256 * 1024 * 1024,
  /**
   * Maximum services of an identity that have separate metrics; further services share one series.
   */
  measuredServicesMax: 500,
  /** Maximum time in which an HTTP request for metrics must arrive completely. */
  metricsReadMs: 5000,
  /**
   * Maximum time for the response to a request for metrics; after that, the connection is
   * closed.
   */
  metricsWriteMs: 10_000,
  /** Time after which a connection for metrics without a further request is closed. */
  metricsIdleMs: 60_000,
  /** Maximum characters of the reason for a failure in the log and in messages to edge routers. */
  reasonCharactersMax: 512,
  /** Maximum duration of an orderly stop; after that, the program exits. */
  stopMsMax: 5000,
  /** Timeout for ending the session at a stop; after that, the session expires. */
  logOutMs: 2000,
} as const
