import { servicePolicy } from '../../entities/kinds/service-policy.ts'
import { isObject } from '../../entities/check-fields.ts'
import { normalizeBody } from '../../entities/normalize-body.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { parseTimeMs } from './enrollment.ts'
import type { WritePreparer } from './write-preparer.ts'

/**
 * Prepares a service policy. A body without `expiresAt` keeps the stored time: OpenZiti clients do
 * not know this field, and their writes must not remove the time.
 */
export const prepareServicePolicy: WritePreparer = (_call, mode, body) => {
  const prepared = normalizeBody(servicePolicy, mode, body)
  const { expiresAt } = body
  if (expiresAt === undefined) return prepared
  const atMs = expiresAt === null ? null : parseTimeMs(expiresAt)
  return { ...prepared, fields: { ...prepared.fields, expiresAt: atMs } }
}

/** The expiry times of role attributes, in their stored form; {} if the body contains none. */
export function toStoredRoleAttributeExpiries(body: JsonObject): JsonObject {
  const { roleAttributesExpireAt: ends } = body
  if (!isObject(ends)) return {}
  const stored = Object.entries(ends).map(([attribute, end]): [string, Json] => [
    attribute,
    end === null ? null : new Date(parseTimeMs(end)).toISOString(),
  ])
  return { roleAttributesExpireAt: Object.fromEntries(stored) }
}
