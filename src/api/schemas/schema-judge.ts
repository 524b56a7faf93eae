import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import type { FieldFault } from '../../lib/problems.ts'

/**
 * Judges JSON Schemas (draft-07) that users bring, and data by them, away from the threads that
 * others wait for: both may be made to take for ever. Callers are judged for in turn: `caller` is
 * who waits for it.
 */
export interface SchemaJudge {
  /**
   * @returns the fault of the schema (field `schema`), null if it is usable.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS when too many wait, or this one has waited for too
   * long; TIMEOUT when the processor had no time for it.
   */
  judgeSchema(schema: JsonObject, caller: string): Promise<FieldFault | null>
  /**
   * @returns the first fault of the data: `(root)` or a dotted path in it; field `data` when it
   * could not be judged in time, null when it fits.
   * @throws {Problem} as `judgeSchema`.
   */
  judgeData(schema: JsonObject, data: Json, caller: string): Promise<FieldFault | null>
  close(): Promise<void>
}
