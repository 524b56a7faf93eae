import type { NodeId } from '../../raft/types.ts'

/**
 * Facts that the leader uses to choose who should lead. Times are monotonic ms of this controller.
 */
export interface LeadershipView {
  readonly nowMs: number
  readonly priority: number
  /** Start of the present slow period of this leader; null if it is not slow. */
  readonly slowSinceMs: number | null
  readonly holds: LeadershipHolds
  readonly candidates: readonly LeaderCandidate[]
}

/** Holds: until these times, leadership does not move. */
interface LeadershipHolds {
  /** Set when an operator moved leadership. Until this time, priorities do not move it. */
  readonly manualUntilMs: number
  /**
   * Set when a priority moved leadership. Until this time, neither priority nor slowness moves it
   * again.
   */
  readonly priorityUntilMs: number
  /**
   * Set when leadership moved away from a slow leader. Until this time, neither priority nor
   * slowness moves it again.
   */
  readonly slowUntilMs: number
}

export interface LeaderCandidate {
  readonly id: NodeId
  readonly priority: number
  /** A connected voter whose log is nearly complete. */
  readonly isEligible: boolean
  /**
   * Start of the present period in which the member is connected, responsive and not slow; null if
   * there is no such period.
   */
  readonly healthySinceMs: number | null
  /** True: the member's measurements are well below the limits that make a leader slow. */
  readonly isMuchHealthier: boolean
}

export interface LeadershipTiming {
  /** Time that a member of higher priority must be healthy before it takes over. */
  readonly healthyMsMin: number
  /** Time that a leader must be slow before it is replaced; one slow write is not enough. */
  readonly slowMsMin: number
  /**
   * Time after an election in which the new leader moves nothing, because it waits for the holds
   * that its predecessor published.
   */
  readonly leadsMsMin: number
  readonly manualHoldMs: number
  readonly priorityHoldMs: number
  readonly slowHoldMs: number
}

export const defaultLeadershipTiming: LeadershipTiming = {
  healthyMsMin: 30_000,
  slowMsMin: 10_000,
  leadsMsMin: 5000,
  manualHoldMs: 10 * 60_000,
  priorityHoldMs: 60_000,
  slowHoldMs: 5 * 60_000,
}

export type LeadershipHoldReason = 'manual' | 'priority' | 'slow'

/**
 * @returns the target of a leadership move and the reason; null when leadership is where it should
 * be, or must not move yet.
 */
export function chooseLeader(
  view: LeadershipView,
  timing: LeadershipTiming,
): { readonly to: NodeId; readonly reason: 'priority' | 'slow' } | null {
  const { nowMs, holds, slowSinceMs, priority } = view
  if (nowMs < holds.priorityUntilMs || nowMs < holds.slowUntilMs) return null
  const eligible = view.candidates.filter(({ isEligible }) => isEligible)
  if (slowSinceMs !== null && nowMs - slowSinceMs >= timing.slowMsMin) {
    const best = highest(eligible.filter(({ isMuchHealthier }) => isMuchHealthier))
    if (best !== null) return { to: best.id, reason: 'slow' }
  }
  if (nowMs < holds.manualUntilMs) return null
  const best = highest(
    eligible.filter(
      ({ priority: its, healthySinceMs: sinceMs }) =>
        its > priority && sinceMs !== null && nowMs - sinceMs >= timing.healthyMsMin,
    ),
  )
  return best === null ? null : { to: best.id, reason: 'priority' }
}

/**
 * The candidate with the highest priority. Among equals the first by id, so that the result is
 * stable.
 */
function highest(candidates: readonly LeaderCandidate[]): LeaderCandidate | null {
  let best: LeaderCandidate | null = null
  for (const candidate of candidates) {
    const isBetter =
      best === null ||
      candidate.priority > best.priority ||
      (candidate.priority === best.priority && candidate.id < best.id)
    if (isBetter) best = candidate
  }
  return best
}
