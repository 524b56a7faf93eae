import type { Json, JsonObject } from '../lib/text/canonical-json.ts'

/** `data` undefined: validate the schema itself. */
export interface SchemaQuestion {
  readonly schema: JsonObject
  readonly data: Json | undefined
}
