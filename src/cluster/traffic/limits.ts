export const clusterTrafficLimits = {
  /** Timeout for the traffic of another controller; then its id is in the response instead. */
  trafficAnswerMsMax: 1000,
  /** Services or routers in one request between controllers. */
  trafficIdsMax: 32,
  /** Encoded bytes of the sums that one controller sends; the remaining rows are added up. */
  trafficTotalsBytesMax: 240 * 1024,
} as const
