/** Limits for controllers that a router follows and dials. */
export const controllerLimits = {
  /** Members of a cluster that are kept and dialed. */
  controllersMax: 64,
  addressesPerControllerMax: 8,
  /**
   * Controllers that the list of a single controller can add, and addresses per known controller.
   */
  controllersReportedByOneMax: 8,
  addressesReportedByOneMax: 2,
  /** Newest keys of removed controllers that are refused. */
  removedControllersMax: 64,
  /**
   * If the router, while running, has not reached a controller for this time and another controller
   * does not list that controller, the unreachable controller loses its vote.
   */
  controllerAbsentMs: 24 * 60 * 60_000,
  membersJudgedEveryMs: 60_000,
  /**
   * Configured addresses, if the endpoints file names controllers: delay from the start to the
   * first attempt, and maximum wait between two attempts.
   */
  configuredEndpointAfterMs: 3000,
  configuredEndpointWaitMsMax: 30_000,
  /**
   * Maximum client API addresses that are retained for renewals: in total, and of one controller.
   */
  apisMax: 16,
  apisPerControllerMax: 4,
  /**
   * For this time after the start, a client API is added only if a majority of the configured
   * controllers lists it. Later, a majority of the controllers that the router reaches is enough.
   */
  apisByFewAfterMs: 30_000,
  endpointsFileBytesMax: 256 * 1024,
  /**
   * Waits between two dials of one controller; they grow from the first to the second value, and
   * half of each is random.
   */
  dialWaitMs: 50,
  dialWaitMsMax: 8_000,
  /** Minimum interval between two dials of one controller. */
  dialEveryMsMin: 1000,
  /** Interval for requesting the members while no leader is known. */
  membersAskedEveryMs: 30_000,
} as const
