/** The two times a program needs. Wall time may jump; monotonic time only measures spans. */
export interface Clock {
  /** UTC, ms since the epoch. */
  nowMs(): number
  /** Never runs back; its zero is arbitrary. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
}

/**
 * The time by which sessions are ended as too old: the earlier of this clock and the time that the
 * clocks of a majority have reached, so that no clock ends them alone. Null while too few clocks
 * are known. UTC ms.
 */
export function majorityNowMs({
  cluster,
  clock,
}: {
  readonly cluster: { quorumClockMs(): number | null }
  readonly clock: Pick<Clock, 'nowMs'>
}): number | null {
  const reachedMs = cluster.quorumClockMs()
  return reachedMs === null ? null : Math.min(clock.nowMs(), reachedMs)
}

/**
 * The time by which one controller limits what another one honors: what the clocks of a majority
 * have reached; of this clock alone while too few of them are known. UTC ms.
 */
export function commonNowMs({
  cluster,
  clock,
}: {
  readonly cluster: { quorumClockMs(): number | null }
  readonly clock: Pick<Clock, 'nowMs'>
}): number {
  return cluster.quorumClockMs() ?? clock.nowMs()
}

/**
 * The time by which pauses, locks and disablements are judged before anything is proposed. Apply
 * judges them by log time, which is ahead where the clocks of a majority were. By the clock alone,
 * what was stored then would last until that is reached.
 */
export function judgedNowMs({
  state,
  clock,
}: {
  readonly state: { readonly logTimeMs: number }
  readonly clock: Pick<Clock, 'nowMs'>
}): number {
  return Math.max(clock.nowMs(), state.logTimeMs)
}
