/** Wall time, which may jump, and monotonic time, which only measures durations. */
export interface Clock {
  /** UTC, ms since the epoch. */
  nowMs(): number
  /** Never decreases; its zero is arbitrary. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
}

/**
 * The time for expiring old sessions: the earlier of the local clock and the time that the clocks
 * of a majority have reached, so that no single clock ends sessions. Null until enough clocks are
 * known. UTC ms.
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
 * The time for limiting what this controller accepts from another one: the time that the clocks of
 * a majority have reached, or the local clock until enough clocks are known. UTC ms.
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
 * The time for checking pauses, lockouts and disablements before a proposal. Apply checks them by
 * log time, which is ahead if the clocks of a majority were ahead. With the local clock alone,
 * times that were stored then would apply until that clock reaches them.
 */
export function proposalNowMs({
  state,
  clock,
}: {
  readonly state: { readonly logTimeMs: number }
  readonly clock: Pick<Clock, 'nowMs'>
}): number {
  return Math.max(clock.nowMs(), state.logTimeMs)
}
