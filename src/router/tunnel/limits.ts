/** Limits for the terminators that a router's tunnel creates for the services it hosts. */
export const tunnelTerminatorLimits = {
  /** Time limit for a controller's answer to a request about a terminator. */
  offerTimeoutMs: 10_000,
  /** First delay after a failure; it doubles after each failure, up to `offerWaitMsMax`. */
  offerWaitMsMin: 500,
  /**
   * Maximum delay after a failure, and the delay after a refusal; up to half of the delay is
   * subtracted at random.
   */
  offerWaitMsMax: 60_000,
  /** Delay before the tunnel sends all terminators again after a controller has connected. */
  offersRepeatedAfterMs: 10_000,
  /**
   * Maximum attempts to remove a terminator; after that, controllers remove it when they validate
   * it.
   */
  withdrawalsMax: 10,
} as const
