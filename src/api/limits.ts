import { type ExternalTokenLimits, externalTokenLimits } from '../auth/tokens/limits.ts'
import { type EnrollmentLimits, enrollmentLimits } from './enrollment/limits.ts'
import { type HttpLimits, httpLimits } from './http/limits.ts'
import { type RecordLimits, recordLimits } from './records/limits.ts'
import { type SignerLimits, signerLimits } from './signers/limits.ts'
import { type ApiSessionLimits, apiSessionLimits } from './sessions/limits.ts'

/**
 * Limits of the HTTP API, from the `limits.ts` of each folder. If the comment of a limit names an
 * error code, requests above the limit are refused with that code. Requests are never queued
 * without a bound.
 */
export type ApiLimits = HttpLimits &
  RecordLimits &
  EnrollmentLimits &
  ApiSessionLimits &
  SignerLimits &
  ExternalTokenLimits

export const defaultApiLimits: ApiLimits = {
  ...httpLimits,
  ...recordLimits,
  ...enrollmentLimits,
  ...apiSessionLimits,
  ...signerLimits,
  ...externalTokenLimits,
}

/**
 * Minimum inactivity timeout of sessions. Other controllers learn the last activity of a session
 * with a delay, so with a shorter timeout they would end active sessions.
 */
const SESSION_TIMEOUT_MS_MIN = 60_000

/**
 * The default limits, overridden with values of the configuration. A session timeout below a minute
 * is replaced with the default. With a short timeout, controllers send each other session activity
 * more often.
 */
export function overrideApiLimits(changes: Partial<ApiLimits>): ApiLimits {
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
