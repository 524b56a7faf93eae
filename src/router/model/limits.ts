/** Limits of the data model that a router receives from its controllers. */
export const modelLimits = {
  /**
   * Records, members of policies, and their estimated bytes. A larger model is discarded
   * completely: a partial model could lack the records that deny access.
   */
  modelRecordsMax: 500_000,
  modelMembersMax: 4_000_000,
  modelBytesMax: 256 * 1024 * 1024,
  /** Undecoded messages about the model; beyond that, the router subscribes again. */
  modelMessagesMax: 4096,
  modelMessageBytesMax: 128 * 1024 * 1024,
  modelSubscriptionSeconds: 300,
  /** Interval for checking whether to renew or move the subscription. */
  modelJudgedEveryMs: 5000,
  modelRenewedEveryMs: 60_000,
  /** Minimum interval between two requests for a full model. */
  modelAskedEveryMs: 1000,
} as const
