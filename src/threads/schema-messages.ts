import type { Json, JsonObject } from '../lib/text/canonical-json.ts'

/** `data` undefined: the schema itself is to be judged. */
export interface SchemaQuestion {
  readonly schema: JsonObject
  readonly data: Json | undefined
}
