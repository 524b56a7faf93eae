import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import type { FieldFault } from '../../lib/problems.ts'

/**
 * Compiles and evaluates JSON Schemas from users (draft-07) in a separate thread, because both may
 * run forever. The thread's time is shared fairly among callers, which `caller` identifies.
 */
export interface SchemaValidator {
  /**
   * @returns the fault of the schema (field `schema`); null if the schema is usable.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS when too many validations wait, or this validation
   * has waited for too long; TIMEOUT when the thread got too little processor time for it.
   */
  validateSchema(schema: JsonObject, caller: string): Promise<FieldFault | null>
  /**
   * @returns the first fault of the data: the field is `(root)` or a dotted path in the data,
   * `data` when validation took too long or failed, or `schema` when the schema is unusable. Null
   * when the data is valid.
   * @throws {Problem} in the same cases as `validateSchema`.
   */
  validateData(schema: JsonObject, data: Json, caller: string): Promise<FieldFault | null>
  close(): Promise<void>
}
