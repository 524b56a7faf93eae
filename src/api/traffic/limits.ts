/** Limits of the traffic that a controller counts by service and by router, in memory. */
export const trafficLimits = {
  /**
   * Services and routers that are counted separately, some 9 kB each. Of the 16 that were unused
   * for the longest time, the one with the least traffic is evicted; its numbers are then part of
   * `other`.
   */
  trafficServicesMax: 1000,
  trafficRoutersMax: 500,
  /** Services or routers with the most traffic in one response. */
  trafficTopMax: 20,
  /**
   * Concurrent requests that collect traffic from the other controllers, divided fairly among
   * callers; more are refused.
   */
  trafficReadsMax: 16,
  /**
   * Maximum time over which the bytes of a router's report are distributed; the report names its
   * interval.
   */
  trafficIntervalMsMax: 15 * 60_000,
} as const
