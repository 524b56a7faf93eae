/** Limits for terminators that a router offers to its controllers for the services it hosts. */
export const terminatorOfferLimits = {
  /** Timeout of a request about a terminator. */
  offerTimeoutMs: 10_000,
  /**
   * Delay after a failure: it grows from `offerWaitMsMin` to `offerWaitMsMax`. After a refusal, it
   * is `offerWaitMsMax` at once.
   */
  offerWaitMsMin: 500,
  offerWaitMsMax: 60_000,
  /** Delay after a controller connects before all terminators are sent again. */
  offersRepeatedAfterMs: 10_000,
  /** Attempts to remove a terminator; after that, the removal is left to the controllers. */
  withdrawalsMax: 10,
} as const
