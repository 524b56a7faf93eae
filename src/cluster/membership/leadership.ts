import type { NodeId } from '../../raft/types.ts'

/**
 * Facts from which the leader chooses the member that should lead. Times are monotonic ms of this
 * controller.
 */
export interface LeadershipView {
  readonly nowMs: number
  readonly priority: number
  /** Time since which this leader has been slow; null if it is not slow. */
  readonly slowSinceMs: number | null
  readonly holds: LeadershipHolds
  readonly candidates: readonly LeaderCandidate[]
}

/** Times until which leadership must not move for certain reasons. */
interface LeadershipHolds {
  /** An operator moved leadership. Until this time, priorities do not move it. */
  readonly manualUntilMs: number
  /** A priority moved leadership. Until this time, neither priority nor slowness moves it again. */
  readonly priorityUntilMs: number
  /**
   * Leadership moved away from a slow leader. Until this time, neither priority nor slowness moves
   * it again.
   */
  readonly slowUntilMs: number
}

export interface LeaderCandidate {
  readonly id: NodeId
  readonly priority: number
  /**
   * True if the member is a connected voter that is not failing and whose log is nearly complete.
   */
  readonly isEligible: boolean
  /** Time since which the member has been connected, responsive and not slow; null if it is not. */
  readonly healthySinceMs: number | null
  /** True if the member's measurements are well below the limits that make a leader slow. */
  readonly isMuchHealthier: boolean
}

export interface LeadershipTiming {
  /** Time for which a member of higher priority must be healthy before leadership moves to it. */
  readonly healthyMsMin: number
  /**
   * Time for which a leader must be slow before leadership moves away from it; one slow write is
   * not enough.
   */
  readonly slowMsMin: number
  /**
   * Time after an election in which the new leader does not transfer leadership automatically,
   * because it waits for the holds that its predecessor published.
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

export type LeadershipTransferReason = 'manual' | 'priority' | 'slow'

/**
 * Chooses the member that should lead.
 * @returns the member to which leadership should move and the reason; null when the right member
 * leads, or when leadership must not move yet.
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
 * The candidate with the highest priority. Among equal candidates, the result is the first by id,
 * so that it is stable.
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
