/** The data model that a router receives from its controllers. */
export const modelLimits = {
  /**
   * The data model: records, members of policies, and their estimated bytes. A larger one is not
   * kept at all, since a part of it may lack what forbids.
   */
  modelRecordsMax: 500_000,
  modelMembersMax: 4_000_000,
  modelBytesMax: 256 * 1024 * 1024,
  /** Messages about the model that wait to be decoded; beyond them, it is asked for again. */
  modelMessagesMax: 4096,
  modelMessageBytesMax: 128 * 1024 * 1024,
  modelSubscriptionSeconds: 300,
  /** How often it is judged whether the subscription is to be renewed or moved. */
  modelJudgedEveryMs: 5000,
  modelRenewedEveryMs: 60_000,
  /** Whole models that are asked for, at most one in this time. */
  modelAskedEveryMs: 1000,
} as const
