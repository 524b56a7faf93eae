/** Limits of the traffic that a controller counts by service and by router, in memory. */
export const trafficLimits = {
  /**
   * Maximum services, and maximum routers, that are counted separately; each takes some 9 kB. Above
   * the maximum, the controller looks at the 16 that were unused for the longest time and evicts
   * the one with the least traffic, whose numbers are then part of `other`.
   */
  trafficServicesMax: 1000,
  trafficRoutersMax: 500,
  /** Services or routers with the most traffic in one response. */
  trafficTopMax: 20,
  /**
   * Maximum concurrent requests that collect traffic from the other controllers, divided fairly
   * among callers; further requests are refused.
   */
  trafficReadsMax: 16,
  /**
   * Maximum time over which the bytes of a router's report are distributed; the report names its
   * interval.
   */
  trafficIntervalMsMax: 15 * 60_000,
} as const
