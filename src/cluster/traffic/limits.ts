export const clusterTrafficLimits = {
  /**
   * Timeout for the traffic of another controller. After it, the response contains the id of that
   * controller instead of its traffic.
   */
  trafficAnswerMsMax: 1000,
  /** Maximum services or routers in one request between controllers. */
  trafficIdsMax: 32,
  /**
   * Maximum encoded bytes of the sums that one controller sends; it adds up the rows that do not
   * fit.
   */
  trafficTotalsBytesMax: 240 * 1024,
} as const
