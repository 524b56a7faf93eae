import type { JsonObject } from '../lib/text/canonical-json.ts'
import type { BodyMember, RequestMode } from './define.ts'

/** Taken when a record is made, and then only. */
export function atCreate(schema: JsonObject, rule: 'required' | 'optional'): BodyMember {
  return { schema, in: ['create'], requiredIn: rule === 'required' ? ['create'] : [] }
}

/** Taken whenever a record is written. */
export function inEveryBody(schema: JsonObject, ...requiredIn: readonly RequestMode[]): BodyMember {
  return { schema, in: ['create', 'replace', 'patch'], requiredIn }
}
