/** Limits of membership management. */
export const membershipLimits = {
  /**
   * Maximum members. Every change logs the whole configuration, and every member connects to every
   * other one.
   */
  membersMax: 32,
  /**
   * Maximum removals that are not complete because the secrets that the member knew are not yet
   * revoked.
   */
  departedMax: 32,
  /** Maximum keys of removed members that routers refuse; only the newest keys are kept. */
  removedKeysMax: 64,
  /**
   * Maximum entries that a learner may lack at its promotion: a voter that lacks more would delay
   * commits. The Raft core has the same limit.
   */
  promotionLagEntriesMax: 1_000,
  /** Maximum concurrent admission requests at one controller. */
  entriesMax: 16,
  /**
   * Maximum concurrent admission requests of one joining controller. The limit is two, because the
   * joining controller may retry before the admitting controller notices that the earlier request
   * was abandoned.
   */
  entriesOfOneMax: 2,
  /**
   * Time after which a disconnected learner that was to become a voter for the first time is
   * removed.
   */
  joinTimeoutMs: 10 * 60_000,
  /** Maximum time for a change, including retries on other leaders. */
  changeTimeoutMs: 15_000,
  /** Maximum time for a leadership transfer, over all attempts and leaders. */
  transferTimeoutMs: 20_000,
} as const
