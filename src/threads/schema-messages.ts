import type { Json, JsonObject } from '../lib/text/canonical-json.ts'

/** A value to validate with a schema; if `data` is undefined, the schema itself is validated. */
export interface SchemaValidationRequest {
  readonly schema: JsonObject
  readonly data: Json | undefined
}
