const SECOND_MS = 1000

/** Limits for requests about records, and for background work of the API. */
export const recordLimits = {
  /**
   * Maximum time for validating a user's schema, or data against such a schema; after that: 400
   * with the field.
   */
  schemaMsMax: 2 * SECOND_MS,
  /**
   * Maximum time that a validation waits before it begins; after that: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  schemaWaitMsMax: 5 * SECOND_MS,
  /**
   * A validation thread that has not finished after this time counts as hanging and is replaced.
   */
  schemaLateMsMax: 8_000,
  /**
   * Maximum validations that wait, shared fairly among callers; above the total or the caller's
   * share: 429 SERVER_TOO_MANY_REQUESTS.
   */
  schemasWaitingMax: 16,
  /** Maximum service-config pairs in one request; above that: 400 COULD_NOT_VALIDATE. */
  serviceConfigsMax: 1000,
  /** Maximum posture reports in one bulk request; above that: 400 COULD_NOT_VALIDATE. */
  postureResponsesMax: 256,
  /**
   * Interval at which the leader looks for a requested integrity run, or a run whose controller has
   * failed.
   */
  integrityLookMs: 1500,
  /** Maximum time in one turn of the event loop for an integrity run. */
  integritySliceMs: 5,
}

export type RecordLimits = Readonly<typeof recordLimits>
