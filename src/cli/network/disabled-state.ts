import { disableMinutesMax } from '../../entities/parts/identity-credentials.ts'
import { systemClock } from '../../lib/clock.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { dateTimeMs } from '../../lib/text/date-time.ts'

/**
 * Fields with which a file disables an identity: permanently, or until a given time. The API sets
 * this state in a separate operation, so these fields are not part of a request body.
 */
export const disabledFields = ['disabled', 'disabledUntil'] as const

const MINUTE_MS = 60_000
/**
 * Times that differ by less than this count as equal, because the API accepts whole minutes and
 * clocks differ by seconds.
 */
const TOLERANCE_MS = 2 * MINUTE_MS

/** Why a value is not valid for one of these fields; null if it is valid. */
export function disabledFieldFault(
  field: (typeof disabledFields)[number],
  value: Json,
): string | null {
  if (field === 'disabled') {
    return typeof value === 'boolean' ? null : 'disabled: expected true or false'
  }
  const ms = timeOf(value)
  if (ms === null) return 'disabledUntil: expected a time such as 2030-01-01T00:00:00Z'
  const isTooFar = ms - systemClock.nowMs() > disableMinutesMax * MINUTE_MS
  return isTooFar ? 'disabledUntil: more than 100 years from now; use disabled: true' : null
}

/**
 * The disabled state of an identity, from an API response or from the export of another controller.
 */
export function readDisabledFields(shown: JsonObject): JsonObject {
  const { disabled, disabledAt = null, disabledUntil = null } = shown
  // Some exports omit `disabled`; `disabledAt` then shows the state.
  const isDisabled = disabled === undefined ? disabledAt !== null : disabled === true
  if (!isDisabled) return {}
  // @guard import-that-loses-rights--until
  return disabledUntil === null ? { disabled: true } : normalizeDisabled({ disabledUntil })
}

/**
 * The disabled state in normalized form: empty if the identity is enabled, or if `disabledUntil`
 * has passed.
 */
export function normalizeDisabled({ disabled, disabledUntil = null }: JsonObject): JsonObject {
  if (disabledUntil === null) return disabled === true ? { disabled: true } : {}
  const ms = timeOf(disabledUntil)
  if (ms === null || ms <= systemClock.nowMs()) return {}
  return { disabledUntil: new Date(ms).toISOString() }
}

/** True if two values denote the same time, within the tolerance. */
export function isAboutSameTime(a: Json, b: Json): boolean {
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
