import type { PostureCheck } from '../entities/kinds/posture-check.ts'
import type { StoredFactor } from '../ports/posture.ts'

/**
 * Grace period after a device wakes or is unlocked. If a posture check then requires a new TOTP
 * code, the device's sessions lose their access unless the user enters the code within this time.
 */
export const PROMPT_GRACE_MS = 5 * 60_000
/** Timeout value that means no limit. */
const NO_TIMEOUT = -1

type Factor = StoredFactor | undefined
type Timed = Pick<PostureCheck, 'timeoutSeconds'>
type Prompted = Timed & Pick<PostureCheck, 'promptOnWake' | 'promptOnUnlock'>

/**
 * Whether the user has entered a code in this session that has not timed out. If the check also
 * requires a new code after the device woke or was unlocked, the user must have entered that code,
 * or the grace period for it must still last.
 */
export function passesMfaCheck(check: Prompted, factor: Factor): boolean {
  if (factor === undefined || factor.passedAtMs === null) return false
  return (
    timeLeftMs(check, factor) > 0 &&
    isPromptSatisfied(check.promptOnWake, factor.wokenAtMs, factor) &&
    isPromptSatisfied(check.promptOnUnlock, factor.unlockedAtMs, factor)
  )
}

/**
 * Time until the entered code times out; 0 if no code was entered, Infinity if the check has no
 * timeout.
 */
function timeLeftMs({ timeoutSeconds }: Timed, { passedAtMs, nowMs }: StoredFactor): number {
  if (passedAtMs === null) return 0
  if (timeoutSeconds <= 0) return Infinity
  return Math.max(0, passedAtMs + timeoutSeconds * 1000 - nowMs)
}

/** Whether the code that the user entered has timed out. */
export function isCodeTimedOut(check: Timed, factor: Factor): boolean {
  if (factor === undefined || factor.passedAtMs === null) return false
  return timeLeftMs(check, factor) === 0
}

/**
 * Time at which a timeout or grace period ended the validity of the last code, UTC ms; if several
 * ended, the latest. 0 if none has ended, or if no code was entered.
 */
export function mfaTimeoutAtMs(check: Prompted, factor: StoredFactor): number {
  const { passedAtMs, wokenAtMs, unlockedAtMs, nowMs } = factor
  if (passedAtMs === null) return 0
  const { timeoutSeconds, promptOnWake, promptOnUnlock } = check
  const ends = [
    timeoutSeconds > 0 ? passedAtMs + timeoutSeconds * 1000 : Infinity,
    ...[promptOnWake ? wokenAtMs : null, promptOnUnlock ? unlockedAtMs : null].map((atMs) =>
      atMs !== null && atMs > passedAtMs ? atMs + PROMPT_GRACE_MS : Infinity,
    ),
  ]
  return Math.max(0, ...ends.filter((endMs) => endMs <= nowMs))
}

/**
 * Whether the device's waking or unlocking requires no new code now: the check does not prompt for
 * one, the device has not woken or been unlocked, the user has entered a code since, or the grace
 * period has not ended.
 */
export function isPromptSatisfied(
  isPrompted: boolean,
  atMs: number | null,
  factor: Factor,
): boolean {
  if (!isPrompted || atMs === null) return true
  return atMs <= (factor?.passedAtMs ?? -Infinity) || graceLeftMs(atMs, factor) > 0
}

function graceLeftMs(atMs: number, factor: Factor): number {
  return Math.max(0, atMs + PROMPT_GRACE_MS - (factor?.nowMs ?? Infinity))
}

/**
 * The timeout and the remaining time for clients, in seconds. Both are -1 if the check has no
 * timeout. If the check has `ignoreLegacyEndpoints`, both are also -1 once the user of a client
 * without support for timeouts has entered a code.
 */
export function clientMfaTimes(
  check: Prompted & Pick<PostureCheck, 'ignoreLegacyEndpoints'>,
  factor: Factor,
): { readonly timeout: number; readonly timeoutRemaining: number } {
  if (check.timeoutSeconds <= 0) return { timeout: NO_TIMEOUT, timeoutRemaining: NO_TIMEOUT }
  const timeout = check.timeoutSeconds
  if (factor === undefined || factor.passedAtMs === null) return { timeout, timeoutRemaining: 0 }
  if (check.ignoreLegacyEndpoints && factor.isLegacyClient) {
    return { timeout: NO_TIMEOUT, timeoutRemaining: NO_TIMEOUT }
  }
  const { passedAtMs, wokenAtMs, unlockedAtMs } = factor
  const graces = [
    [check.promptOnWake, wokenAtMs] as const,
    [check.promptOnUnlock, unlockedAtMs] as const,
  ].flatMap(([isPrompted, atMs]) =>
    isPrompted && atMs !== null && atMs > passedAtMs ? [graceLeftMs(atMs, factor)] : [],
  )
  const leftMs = Math.min(timeLeftMs(check, factor), ...graces)
  return { timeout, timeoutRemaining: Math.floor(leftMs / 1000) }
}

/**
 * Times for a client whose device just woke or was unlocked, for a check that then requires a code.
 * null when the user entered no code, or when the code times out within the grace period.
 */
export function timesUntilCodeRequired(
  check: Timed,
  factor: Factor,
): { readonly timeout: number; readonly timeoutRemaining: number } | null {
  if (factor === undefined || timeLeftMs(check, factor) <= PROMPT_GRACE_MS) return null
  const timeout = check.timeoutSeconds > 0 ? check.timeoutSeconds : NO_TIMEOUT
  return { timeout, timeoutRemaining: PROMPT_GRACE_MS / 1000 }
}
