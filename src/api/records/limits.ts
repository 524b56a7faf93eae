const SECOND_MS = 1000

/** Limits of requests about records, and of the work that the API does beside requests. */
export const recordLimits = {
  /** Validating one schema that a user defined, or data against it; beyond: 400 with the field. */
  schemaMsMax: 2 * SECOND_MS,
  /** Maximum wait for such a validation; beyond: 429 SERVER_TOO_MANY_REQUESTS. */
  schemaWaitMsMax: 5 * SECOND_MS,
  /**
   * A validation that has not ended after this long means that its thread hangs and is replaced.
   */
  schemaLateMsMax: 8_000,
  /**
   * Validations that wait, shared by callers; beyond the total or its share: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  schemasWaitingMax: 16,
  /** Pairs of service and config in one request; beyond: 400 COULD_NOT_VALIDATE. */
  serviceConfigsMax: 1000,
  /** Answers in one bulk posture response; beyond: 400 COULD_NOT_VALIDATE. */
  postureResponsesMax: 256,
  /** Interval at which the leader checks for an integrity run whose controller has failed. */
  integrityLookMs: 1500,
  /** Time of an integrity run between two turns of the event loop. */
  integritySliceMs: 5,
}

export type RecordLimits = Readonly<typeof recordLimits>
