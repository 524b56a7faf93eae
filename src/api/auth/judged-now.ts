import type { ApiParts } from '../parts.ts'

/**
 * The time by which pauses, locks and disablements are judged before anything is proposed. Apply
 * judges them by log time, which is ahead where the clocks of a majority were. By the clock alone,
 * what was stored then would last until that is reached.
 */
export function judgedNowMs({ state, clock }: Pick<ApiParts, 'state' | 'clock'>): number {
  return Math.max(clock.nowMs(), state.logTimeMs)
}
