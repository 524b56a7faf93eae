import { authPolicy } from '../../entities/kinds/auth-policy.ts'
import { isObject } from '../../entities/check.ts'
import { normalizeBody, type NormalizedFields } from '../../entities/normalise.ts'
import type { RequestMode } from '../../entities/define.ts'
import { passwordLengthMin } from '../../entities/parts/auth-policy-factors.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import type { Preparer } from './preparer.ts'

/** Minimum of each number. As in OpenZiti, lower values are raised to the minimum. */
const minima: Readonly<Record<string, number>> = {
  minPasswordLength: passwordLengthMin,
  maxAttempts: 0,
  lockoutDurationMinutes: 0,
}

export const prepareAuthPolicy: Preparer = (_call, mode, body) => prepareAuthPolicyBody(mode, body)

/** An empty signer id means no signer. For a patch, only the given fields are validated. */
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
