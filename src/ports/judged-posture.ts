import type { JsonObject } from '../lib/text/canonical-json.ts'
import type { EntityRecord } from '../lib/entity-record.ts'

/** The posture of one client, held against posture checks, which are given as their records. */
export interface JudgedPosture {
  passes(check: EntityRecord): boolean
  queryOf(check: EntityRecord): PostureQuery
  /** Values that the check asked for and what it got, by its type. */
  valuesOf(check: EntityRecord): JsonObject
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
