import type { QuotaLimits } from '../lib/bounds/quota.ts'

/**
 * Lines about refused writes in one minute: what is refused costs its caller nothing, and must not
 * fill a disk.
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
