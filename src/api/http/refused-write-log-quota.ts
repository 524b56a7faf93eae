import type { QuotaLimits } from '../../lib/bounds/quota.ts'

/**
 * Maximum log lines about refused writes per minute: refused requests cost the caller nothing, so a
 * caller could otherwise fill the disk.
 */
export const refusedWriteLogLimits = {
  /**
   * Maximum log lines about the refused writes of one caller per window; further refusals are
   * only counted.
   */
  linesOfOneMax: 30,
  /**
   * Maximum log lines about refused writes of all callers per window; further refusals are only
   * counted.
   */
  linesMax: 600,
  /**
   * Length of the window. At the first refusal after the window, one log line shows the number of
   * refusals that were not logged.
   */
  windowMs: 60_000,
} as const

export const refusedWriteLogQuota: QuotaLimits = {
  ofOneMax: refusedWriteLogLimits.linesOfOneMax,
  allMax: refusedWriteLogLimits.linesMax,
  windowMs: refusedWriteLogLimits.windowMs,
}
