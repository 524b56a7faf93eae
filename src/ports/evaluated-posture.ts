import type { JsonObject } from '../lib/text/canonical-json.ts'
import type { RecordOf } from '../entities/kind-records.ts'

/** The posture of one client, evaluated against the posture checks that its methods receive. */
export interface EvaluatedPosture {
  passes(check: RecordOf<'postureCheck'>): boolean
  queryOf(check: RecordOf<'postureCheck'>): PostureQuery
  /**
   * The values that the check expects and the values that the client has. The members of the object
   * depend on the type of the check.
   */
  valuesOf(check: RecordOf<'postureCheck'>): JsonObject
}

/** Posture of a client about which nothing is known. */
export const unknownPosture: EvaluatedPosture = {
  passes: () => false,
  queryOf: ({ id }) => ({ id, isPassing: false }),
  valuesOf: () => ({}),
}

/**
 * Query of a posture check, as clients see it; its other fields depend on the type of the check.
 */
export type PostureQuery = JsonObject & { readonly isPassing: boolean }
