/**
 * Limits for the counts of traffic by service and by router, which each controller keeps in memory.
 */
export const trafficLimits = {
  /**
   * Maximum services whose traffic is counted separately, about 9 kB each. Above the limit, one
   * service is evicted: of the 16 that were unused for the longest time, the one with the least
   * traffic. The counts of an evicted service are added to `other`.
   */
  trafficServicesMax: 1000,
  /**
   * Maximum routers whose traffic is counted separately. Above the limit, one router is evicted,
   * chosen as for services.
   */
  trafficRoutersMax: 500,
  /** Maximum services or routers with the most traffic in one response. */
  trafficTopMax: 20,
  /**
   * Maximum concurrent requests that collect counts from the other controllers, shared fairly among
   * callers; more are refused.
   */
  trafficReadsMax: 16,
  /**
   * Maximum interval over which the bytes in a router's usage report are distributed. Each report
   * contains the length of its interval; a longer one is shortened to this limit.
   */
  trafficIntervalMsMax: 15 * 60_000,
} as const
