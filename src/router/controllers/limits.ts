/** Controllers that a router follows and dials. */
export const controllerLimits = {
  /** Members of a cluster that are kept and dialed. */
  controllersMax: 64,
  addressesPerControllerMax: 8,
  /** Controllers that one other can add by its list alone, and addresses of each known one. */
  controllersReportedByOneMax: 8,
  addressesReportedByOneMax: 2,
  /** Keys of removed controllers that are refused, the newest. */
  removedControllersMax: 64,
  /**
   * A controller that the router has not reached for this long while it ran loses its vote, if
   * another controller does not list it.
   */
  controllerAbsentMs: 24 * 60 * 60_000,
  membersJudgedEveryMs: 60_000,
  /**
   * Addresses of the configuration, if the endpoints file names controllers: time from the start to
   * the first attempt, and the longest wait between two.
   */
  configuredEndpointAfterMs: 3000,
  configuredEndpointWaitMsMax: 30_000,
  /** Addresses of the client API that renewals are asked at. */
  apisMax: 16,
  endpointsFileBytesMax: 256 * 1024,
  /**
   * Waits between two dials of one controller grow from the one to the other, half of each by
   * chance.
   */
  dialWaitMs: 50,
  dialWaitMsMax: 8_000,
  /** Between two dials of one controller, at least. */
  dialEveryMsMin: 1000,
  /** Without the word of a leader, members are asked for this often. */
  membersAskedEveryMs: 30_000,
} as const
