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
 * The time for expiring old sessions: the local clock, or if earlier, the time that the clocks of a
 * majority of controllers have reached, so that no single clock ends sessions. Null until enough
 * clocks are known. UTC ms.
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
 * The time for judging data that another controller sends: the time that the clocks of a majority
 * have reached, or the local clock until enough clocks are known. UTC ms.
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
 * The time for checking pauses, lockouts and disablements before a proposal: the local clock or log
 * time, whichever is later. When the entry is applied, log time decides. Log time is ahead of the
 * local clock if the clocks of a majority were ahead. With only the local clock, this controller
 * would then refuse a request until its clock reaches an end time that log time has already passed.
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
