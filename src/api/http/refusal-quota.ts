import type { QuotaLimits } from '../../lib/bounds/quota.ts'

/**
 * Maximum log lines about refused writes per minute: a refusal costs the caller nothing, so a
 * caller could fill the disk.
 */
export const refusalLimits = {
  linesOfOneMax: 30,
  linesMax: 600,
  windowMs: 60_000,
} as const

export const refusalQuota: QuotaLimits = {
  ofOneMax: refusalLimits.linesOfOneMax,
  allMax: refusalLimits.linesMax,
  windowMs: refusalLimits.windowMs,
}
