import { type ExternalTokenLimits, externalTokenLimits } from '../auth/tokens/limits.ts'
import { type EnrollmentLimits, enrollmentLimits } from './enrollment/limits.ts'
import { type HttpLimits, httpLimits } from './http/limits.ts'
import { type RecordLimits, recordLimits } from './records/limits.ts'
import { type ApiSessionLimits, apiSessionLimits } from './sessions/limits.ts'

/**
 * Limits of the HTTP API, from the `limits.ts` of each subject. A request beyond a limit is refused
 * with the code given there; it is never queued without a bound or truncated silently.
 */
export type ApiLimits = HttpLimits &
  RecordLimits &
  EnrollmentLimits &
  ApiSessionLimits &
  ExternalTokenLimits

export const defaultApiLimits: ApiLimits = {
  ...httpLimits,
  ...recordLimits,
  ...enrollmentLimits,
  ...apiSessionLimits,
  ...externalTokenLimits,
}

/**
 * The shortest inactivity timeout; a shorter one would end sessions faster than their activity
 * spreads.
 */
const SESSION_TIMEOUT_MS_MIN = 60_000

/**
 * The default limits with values of the configuration. A session timeout below a minute is replaced
 * with the default, and with a short timeout activity spreads more often.
 */
export function apiLimitsWith(changes: Partial<ApiLimits>): ApiLimits {
  const limits = { ...defaultApiLimits, ...changes }
  const sessionTimeoutMs =
    limits.sessionTimeoutMs < SESSION_TIMEOUT_MS_MIN
      ? defaultApiLimits.sessionTimeoutMs
      : limits.sessionTimeoutMs
  const activityFlushMs = Math.min(limits.activityFlushMs, sessionTimeoutMs / 16)
  const activityMoveMs = Math.min(limits.activityMoveMs, sessionTimeoutMs / 8)
  const activityLogMs = Math.min(limits.activityLogMs, sessionTimeoutMs / 4)
  return { ...limits, sessionTimeoutMs, activityFlushMs, activityMoveMs, activityLogMs }
}
