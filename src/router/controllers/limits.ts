/** Limits for the controllers that a router knows and dials. */
export const controllerLimits = {
  /** Maximum members of a cluster that the router stores and dials. */
  controllersMax: 64,
  /** Maximum addresses that are stored for one controller; further addresses are dropped. */
  addressesPerControllerMax: 8,
  /**
   * Maximum controllers without a majority that the router adds because one controller lists them.
   */
  controllersReportedByOneMax: 8,
  /**
   * Maximum addresses of one controller that the router uses although only one controller lists
   * them.
   */
  addressesReportedByOneMax: 2,
  /** Maximum keys of removed controllers that the router refuses; the newest keys remain. */
  removedControllersMax: 64,
  /**
   * If the router, while running, has not reached a controller for this time and another controller
   * does not list it as a member, the unreachable controller has no vote about the members.
   */
  controllerAbsentMs: 24 * 60 * 60_000,
  /**
   * Interval for checking whether the expiry of a time limit, such as `controllerAbsentMs`, has
   * changed the known controllers.
   */
  membersJudgedEveryMs: 60_000,
  /**
   * Delay from the start to the first attempt at a configured address, if the endpoints file names
   * controllers.
   */
  configuredEndpointAfterMs: 3000,
  /**
   * Maximum wait between two attempts at a configured address, if the endpoints file names
   * controllers.
   */
  configuredEndpointWaitMsMax: 30_000,
  /**
   * Maximum client API addresses that are stored for certificate renewals; further addresses are
   * dropped.
   */
  apisMax: 16,
  /**
   * Maximum client API addresses that are stored for one controller; further addresses are
   * dropped.
   */
  apisPerControllerMax: 4,
  /**
   * For this time after the start, the router uses a new client API only if as many controllers
   * list it as a majority of the configured addresses. After that, while no client API is known, a
   * majority of the controllers that sent a list is sufficient.
   */
  apisByFewAfterMs: 30_000,
  /** Maximum bytes of the endpoints file; a larger file is treated as damaged. */
  endpointsFileBytesMax: 256 * 1024,
  /**
   * Base of the wait between two dials of one controller. The wait doubles with each failure, up to
   * `dialWaitMsMax`, and half of it is random.
   */
  dialWaitMs: 50,
  /** Maximum wait between two dials of one controller. */
  dialWaitMsMax: 8_000,
  /**
   * Minimum wait after a dial before the addresses of a controller are tried again from the first
   * one.
   */
  dialEveryMsMin: 1000,
  /**
   * Interval for requesting the lists of members while a list of a controller differs from the
   * known members.
   */
  membersAskedEveryMs: 30_000,
} as const
