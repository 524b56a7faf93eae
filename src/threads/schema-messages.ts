import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import type { FieldFault } from '../lib/problems.ts'

/** `data` undefined: the schema itself is to be judged. */
export interface SchemaQuestion {
  readonly schema: JsonObject
  readonly data: Json | undefined
}

export type SchemaReport =
  | { readonly type: 'ready' }
  | { readonly type: 'judged'; readonly fault: FieldFault | null }
