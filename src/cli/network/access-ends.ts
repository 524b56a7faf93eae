import { isObject } from '../../entities/check.ts'
import { systemClock } from '../../lib/clock.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { dateTimeMs } from '../../lib/text/date-time.ts'

/**
 * Fields with the end of access, by kind. A file that omits such a field keeps the end, so that an
 * older file does not prolong access; null in a file removes it.
 */
const endFields: Readonly<Record<string, string>> = {
  servicePolicy: 'expiresAt',
  identity: 'roleAttributesExpireAt',
}

/** Whether a difference of the field counts: false if the file omits an end that is kept. */
export function isKeptEnd(kind: string, field: string, wanted: JsonObject): boolean {
  return endFields[kind] === field && !Object.hasOwn(wanted, field)
}

/** True for an object that would grant nothing, because its end has passed. */
export function hasEnded(kind: string, fields: JsonObject): boolean {
  return kind === 'servicePolicy' && isPast(fields['expiresAt'])
}

/** The ends of an object of a file: null and an empty map remove the ends of a record. */
export function normalizeGivenEnds(
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

/** The ends of a record, as an export states them: only those that are to come. */
export function normalizeReadEnds(kind: string, fields: JsonObject): JsonObject {
  const { roleAttributesExpireAt: ends, ...others } = normalizeEnds(kind, fields)
  if (ends === undefined) return others
  return Object.keys(ends ?? {}).length === 0 ? others : { ...others, roleAttributesExpireAt: ends }
}

/**
 * Normalizes ends to UTC. Role attributes whose end has passed are removed with their end, as the
 * network removes them.
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
