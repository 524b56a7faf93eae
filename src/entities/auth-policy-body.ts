import { authPolicy } from './kinds/auth-policy.ts'
import { isObject } from './check-fields.ts'
import { normalizeBody, type NormalizedFields } from './normalize-body.ts'
import type { RequestMode } from './define-entity.ts'
import { passwordLengthMin } from './parts/auth-policy-factors.ts'
import type { Json, JsonObject } from '../lib/text/canonical-json.ts'

/** Minimum of each number. As in OpenZiti, lower values are raised to the minimum. */
const minima: Readonly<Record<string, number>> = {
  minPasswordLength: passwordLengthMin,
  maxAttempts: 0,
  lockoutDurationMinutes: 0,
}

/**
 * Prepares the body of an auth policy: raises numbers to their minimum, and replaces an empty
 * `requireExtJwtSigner` by null. For a patch, only the given fields are prepared.
 */
export function prepareAuthPolicyBody(mode: RequestMode, body: JsonObject): NormalizedFields {
  const prepared = normalizeBody(authPolicy, mode, body)
  const { primary, secondary, ...fields } = prepared.fields
  const made: Record<string, Json> = { ...fields }
  if (isObject(primary)) made['primary'] = raised(primary)
  if (isObject(secondary)) {
    const hasNone = secondary['requireExtJwtSigner'] === ''
    made['secondary'] = hasNone ? { ...secondary, requireExtJwtSigner: null } : secondary
  }
  return { ...prepared, fields: made }
}

function raised(primary: JsonObject): JsonObject {
  const { updb } = primary
  if (!isObject(updb)) return primary
  const numbers = Object.entries(minima).flatMap(([name, minimum]) => {
    const value = updb[name]
    return typeof value === 'number' ? [[name, Math.max(value, minimum)] as const] : []
  })
  return { ...primary, updb: { ...updb, ...Object.fromEntries(numbers) } }
}
