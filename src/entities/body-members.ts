import type { JsonObject } from '../lib/text/canonical-json.ts'
import type { BodyMember, RequestMode } from './define-entity.ts'

/** A body member that is accepted only when a record is created. */
export function bodyMemberForCreate(schema: JsonObject, rule: 'required' | 'optional'): BodyMember {
  return { schema, in: ['create'], requiredIn: rule === 'required' ? ['create'] : [] }
}

/** A body member that is accepted in every write of a record. */
export function bodyMemberForAllWrites(
  schema: JsonObject,
  ...requiredIn: readonly RequestMode[]
): BodyMember {
  return { schema, in: ['create', 'replace', 'patch'], requiredIn }
}
