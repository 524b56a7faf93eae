/** Limits of the data model that a router receives from its controllers. */
export const modelLimits = {
  /**
   * Maximum records of the model. A larger model is discarded completely, because an incomplete
   * model could lack the records that deny access.
   */
  modelRecordsMax: 500_000,
  /** Maximum members of all policies in the model; a larger model is discarded completely. */
  modelMembersMax: 4_000_000,
  /** Maximum estimated bytes of the model; a larger model is discarded completely. */
  modelBytesMax: 256 * 1024 * 1024,
  /**
   * Maximum messages about the model that wait to be decoded; beyond that, the router subscribes
   * again.
   */
  modelMessagesMax: 4096,
  /**
   * Maximum bytes of the messages about the model that wait to be decoded; beyond that, the router
   * subscribes again.
   */
  modelMessageBytesMax: 128 * 1024 * 1024,
  /** Duration of the subscription that a router requests, seconds. */
  modelSubscriptionSeconds: 300,
  /**
   * Interval for checking whether to renew the subscription or to subscribe at another controller.
   */
  modelJudgedEveryMs: 5000,
  /** Interval at which the router renews its subscription. */
  modelRenewedEveryMs: 60_000,
  /** Minimum interval between two requests of a router to subscribe again. */
  modelAskedEveryMs: 1000,
} as const
