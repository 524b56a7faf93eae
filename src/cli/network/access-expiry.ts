import { isObject } from '../../entities/check-fields.ts'
import { systemClock } from '../../lib/clock.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { dateTimeMs } from '../../lib/text/date-time.ts'

/**
 * For each kind, the field with the time at which access ends. If a file omits this field, the
 * network keeps the stored time, so that an older file does not prolong access; null in the file
 * removes the time.
 */
const endFields: Readonly<Record<string, string>> = {
  servicePolicy: 'expiresAt',
  identity: 'roleAttributesExpireAt',
}

/**
 * Whether the file omits the field, so that the network keeps its stored time at which access ends.
 * The field then does not count as different.
 */
export function isOmittedExpiry(kind: string, field: string, wanted: JsonObject): boolean {
  return endFields[kind] === field && !Object.hasOwn(wanted, field)
}

/** True for a policy that would grant nothing, because the time at which it expires has passed. */
export function hasPolicyExpired(kind: string, fields: JsonObject): boolean {
  return kind === 'servicePolicy' && isPast(fields['expiresAt'])
}

/**
 * Adds to the fields of an object the times at which its access ends, if the file contains them:
 * null or an empty map removes the stored times.
 */
export function normalizeFileExpiries(
  kind: string,
  given: JsonObject,
  fields: JsonObject,
): JsonObject {
  const name = endFields[kind]
  const ends = name === undefined ? undefined : given[name]
  return name === undefined || ends === undefined
    ? fields
    : normalizeEnds(kind, { ...fields, [name]: ends })
}

/**
 * Converts the times at which a record's access ends to the form of an export; omits role
 * attributes whose time has passed.
 */
export function normalizeRecordExpiries(kind: string, fields: JsonObject): JsonObject {
  const { roleAttributesExpireAt: ends, ...others } = normalizeEnds(kind, fields)
  if (ends === undefined) return others
  return Object.keys(ends ?? {}).length === 0 ? others : { ...others, roleAttributesExpireAt: ends }
}

/**
 * Converts the times at which access ends to UTC. Removes role attributes whose time has passed,
 * together with that time, as the network does.
 */
function normalizeEnds(kind: string, fields: JsonObject): JsonObject {
  if (kind === 'servicePolicy') {
    const { expiresAt } = fields
    return expiresAt === undefined ? fields : { ...fields, expiresAt: inUtc(expiresAt) }
  }
  const { roleAttributesExpireAt: ends, roleAttributes: held, ...others } = fields
  if (kind !== 'identity' || ends === undefined) return fields
  const given = isObject(ends) ? Object.entries(ends) : []
  const past = new Set(given.filter(([, end]) => isPast(end)).map(([attribute]) => attribute))
  const coming = given
    .filter(([attribute, end]) => end !== null && !past.has(attribute))
    .map(([attribute, end]): [string, Json] => [attribute, inUtc(end)])
    .sort(([a], [b]) => (a < b ? -1 : 1))
  const kept = ((held ?? []) as readonly string[]).filter((attribute) => !past.has(attribute))
  return {
    ...others,
    ...(kept.length === 0 ? {} : { roleAttributes: kept }),
    roleAttributesExpireAt: Object.fromEntries(coming),
  }
}

function isPast(end: Json | undefined): boolean {
  const ms = typeof end === 'string' ? dateTimeMs(end) : null
  return ms !== null && ms <= systemClock.nowMs()
}

function inUtc(end: Json): Json {
  const ms = typeof end === 'string' ? dateTimeMs(end) : null
  return ms === null ? end : new Date(ms).toISOString()
}
