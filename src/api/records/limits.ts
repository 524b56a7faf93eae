const SECOND_MS = 1000

/** Limits of requests about records, and of the work that the API does beside requests. */
export const recordLimits = {
  /**
   * Maximum time for validating a schema of a user, or data by such a schema; beyond: 400 with the
   * field.
   */
  schemaMsMax: 2 * SECOND_MS,
  /** Maximum wait for such a validation; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  schemaWaitMsMax: 5 * SECOND_MS,
  /** If a validation has not ended after this time, its thread hangs and is replaced. */
  schemaLateMsMax: 8_000,
  /**
   * Maximum validations that wait, shared by callers; beyond the total or the caller's share: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  schemasWaitingMax: 16,
  /** Maximum pairs of service and config in one request; beyond: 400 COULD_NOT_VALIDATE. */
  serviceConfigsMax: 1000,
  /** Maximum answers in one bulk posture response; beyond: 400 COULD_NOT_VALIDATE. */
  postureResponsesMax: 256,
  /** Interval at which the leader checks for an integrity run whose controller has failed. */
  integrityLookMs: 1500,
  /** Maximum time of an integrity run in one turn of the event loop. */
  integritySliceMs: 5,
}

export type RecordLimits = Readonly<typeof recordLimits>
