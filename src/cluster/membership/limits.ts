/** Limits of the keeping of members. */
export const membershipLimits = {
  /**
   * Members of a configuration: it goes with every change, and every member keeps a link to every
   * other.
   */
  membersMax: 32,
  /** Removals that are not settled yet. */
  departedMax: 32,
  /** Keys of removed members that routers are to refuse, the newest. */
  removedKeysMax: 64,
  /** A learner that lacks more would hold up commits as a voter; the core has the same limit. */
  promotionLagEntriesMax: 1_000,
  /** Strangers that ask one controller to be let in, at a time. */
  entriesMax: 16,
  /** Entries of one of them; it may ask again before it is known here that it gave up. */
  entriesOfOneMax: 2,
  /** A learner that is to vote and stays away this long is removed. */
  joinTimeoutMs: 10 * 60_000,
  /** A change is asked of one leader after the other this long. */
  changeTimeoutMs: 15_000,
} as const
