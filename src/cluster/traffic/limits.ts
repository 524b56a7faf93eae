export const clusterTrafficLimits = {
  /**
   * Timeout for the traffic of another controller; after that, the response names this controller
   * instead.
   */
  trafficAnswerMsMax: 1000,
  /** Maximum services or routers in one request between controllers. */
  trafficIdsMax: 32,
  /**
   * Maximum encoded bytes of the rows that one controller sends; the remaining rows are added up in
   * one row.
   */
  trafficTotalsBytesMax: 240 * 1024,
} as const
