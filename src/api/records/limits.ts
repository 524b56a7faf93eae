const SECOND_MS = 1000

/** Limits for requests about records, and for background work of the API. */
export const recordLimits = {
  /**
   * Maximum time for validating a user's schema, or data against such a schema; after that: 400
   * with the field.
   */
  schemaMsMax: 2 * SECOND_MS,
  /**
   * Maximum wait until validating a schema, or data against a schema, begins; after that: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  schemaWaitMsMax: 5 * SECOND_MS,
  /** If a validation has not ended after this time, its thread hangs and is replaced. */
  schemaLateMsMax: 8_000,
  /**
   * Maximum validations that wait, divided among callers; above the total or the caller's share:
   * 429 SERVER_TOO_MANY_REQUESTS.
   */
  schemasWaitingMax: 16,
  /** Maximum service-config pairs in one request; above that: 400 COULD_NOT_VALIDATE. */
  serviceConfigsMax: 1000,
  /** Maximum posture reports in one bulk request; above that: 400 COULD_NOT_VALIDATE. */
  postureResponsesMax: 256,
  /** Interval at which the leader looks for an integrity run whose controller has failed. */
  integrityLookMs: 1500,
  /** Maximum time that an integrity run uses in one turn of the event loop. */
  integritySliceMs: 5,
}

export type RecordLimits = Readonly<typeof recordLimits>
