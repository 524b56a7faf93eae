/** Terminators that a router offers to its controllers for the services it hosts. */
export const terminatorOfferLimits = {
  /** Wait for the answer to a request about a terminator. */
  offerTimeoutMs: 10_000,
  /** Waits after failures grow from the one to the other; after a refusal it is the longest. */
  offerWaitMsMin: 500,
  offerWaitMsMax: 60_000,
  /** All terminators are told again so long after a controller has connected. */
  offersRepeatedAfterMs: 10_000,
  /** Attempts to remove a terminator before it is left to the controllers. */
  withdrawalsMax: 10,
} as const
