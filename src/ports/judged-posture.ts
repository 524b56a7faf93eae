import type { JsonObject } from '../lib/text/canonical-json.ts'
import type { RecordOf } from '../entities/kind-records.ts'

/** The posture of one client, held against posture checks, which are given as their records. */
export interface JudgedPosture {
  passes(check: RecordOf<'postureCheck'>): boolean
  queryOf(check: RecordOf<'postureCheck'>): PostureQuery
  /** Values that the check asked for and what it got, by its type. */
  valuesOf(check: RecordOf<'postureCheck'>): JsonObject
}

/** Posture of a client that nothing is known of. */
export const unknownPosture: JudgedPosture = {
  passes: () => false,
  queryOf: ({ id }) => ({ id, isPassing: false }),
  valuesOf: () => ({}),
}

/**
 * Query of a posture check to clients, as it is shown to them; its other members depend on the
 * type of the check.
 */
export type PostureQuery = JsonObject & { readonly isPassing: boolean }
