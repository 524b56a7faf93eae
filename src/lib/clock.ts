/** Wall clock time, which may jump, and monotonic time, which only measures durations. */
export interface Clock {
  /** UTC, ms since the epoch. */
  nowMs(): number
  /** Never decreases; its starting value is arbitrary. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
}

/**
 * The time for expiring old sessions, UTC ms: the earlier of the local clock and the time that the
 * clocks of a majority of controllers have reached. One clock that is ahead therefore ends no
 * session. Null until enough clocks are known.
 */
export function earlierOfLocalAndQuorumNowMs({
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
 * The time for checking data that another controller sends, UTC ms: the time that the clocks of a
 * majority have reached, or the local clock until enough clocks are known.
 */
export function quorumOrLocalNowMs({
  cluster,
  clock,
}: {
  readonly cluster: { quorumClockMs(): number | null }
  readonly clock: Pick<Clock, 'nowMs'>
}): number {
  return cluster.quorumClockMs() ?? clock.nowMs()
}

/**
 * The time for checking pauses, lockouts and disablements before a proposal: the later of the local
 * clock and log time. The state machine uses log time alone, which is ahead of the local clock if
 * the clocks of a majority were ahead. If the check used the local clock alone, this controller
 * would refuse requests for some time after a pause has ended by log time.
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
