import { disableMinutesMax } from '../../entities/parts/identity-credentials.ts'
import { systemClock } from '../../lib/clock.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { dateTimeMs } from '../../lib/text/date-time.ts'

/**
 * Fields with which a file disables an identity: permanently, or until a time. They are not fields
 * of a request body: a separate operation sets them.
 */
export const disabledFields = ['disabled', 'disabledUntil'] as const

const MINUTE_MS = 60_000
/**
 * Times that differ by less count as equal, because the operation accepts whole minutes and clocks
 * differ by seconds.
 */
const TOLERANCE_MS = 2 * MINUTE_MS

/** The fault of a value for one of these fields; null if it is valid. */
export function disabledFault(field: (typeof disabledFields)[number], value: Json): string | null {
  if (field === 'disabled') {
    return typeof value === 'boolean' ? null : 'disabled: expected true or false'
  }
  const ms = timeOf(value)
  if (ms === null) return 'disabledUntil: expected a time such as 2030-01-01T00:00:00Z'
  const isTooFar = ms - systemClock.nowMs() > disableMinutesMax * MINUTE_MS
  return isTooFar ? 'disabledUntil: more than 100 years from now; use disabled: true' : null
}

/** The disabled state of an identity from an API response or from another controller's export. */
export function readDisabledFields(shown: JsonObject): JsonObject {
  const { disabled, disabledAt = null, disabledUntil = null } = shown
  // Some exports omit `disabled`, which follows from `disabledAt`.
  const isDisabled = disabled === undefined ? disabledAt !== null : disabled === true
  if (!isDisabled) return {}
  // @guard import-that-loses-rights--until
  return disabledUntil === null ? { disabled: true } : normalizeDisabled({ disabledUntil })
}

/**
 * Normalized form: empty for an identity that is enabled, or whose `disabledUntil` has passed.
 */
export function normalizeDisabled({ disabled, disabledUntil = null }: JsonObject): JsonObject {
  if (disabledUntil === null) return disabled === true ? { disabled: true } : {}
  const ms = timeOf(disabledUntil)
  if (ms === null || ms <= systemClock.nowMs()) return {}
  return { disabledUntil: new Date(ms).toISOString() }
}

/** True if two values mean the same time, within the tolerance. */
export function isSameTime(a: Json, b: Json): boolean {
  const [first, second] = [timeOf(a), timeOf(b)]
  return first !== null && second !== null && Math.abs(first - second) <= TOLERANCE_MS
}

/**
 * Minutes for which an identity must be disabled: 0 means permanently; null means that the identity
 * is enabled.
 * @param nowMs time of the controller that receives the request.
 */
export function disabledMinutes(fields: JsonObject, nowMs: number): number | null {
  if (fields['disabled'] === true) return 0
  const ms = timeOf(fields['disabledUntil'] ?? null)
  // @guard import-that-loses-rights--minutes
  return ms === null || ms <= nowMs ? null : Math.ceil((ms - nowMs) / MINUTE_MS)
}

function timeOf(value: Json): number | null {
  return typeof value === 'string' ? dateTimeMs(value) : null
}
