/** Limits for terminators that a router offers to its controllers for the services it hosts. */
export const tunnelTerminatorLimits = {
  /** Timeout of a request about a terminator. */
  offerTimeoutMs: 10_000,
  /** First delay after a failure; it doubles after each failure, up to `offerWaitMsMax`. */
  offerWaitMsMin: 500,
  /**
   * Maximum delay after a failure, and the delay after a refusal; a random part of up to half is
   * subtracted.
   */
  offerWaitMsMax: 60_000,
  /** Delay after a controller connects before all terminators are sent again. */
  offersRepeatedAfterMs: 10_000,
  /**
   * Maximum attempts to remove a terminator; after that, the removal is left to the controllers.
   */
  withdrawalsMax: 10,
} as const
