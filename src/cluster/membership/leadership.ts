import type { NodeId } from '../../raft/types.ts'

/**
 * View of the leader by which it judges who should lead. Times are monotonic ms of this controller.
 */
export interface LeadershipView {
  readonly nowMs: number
  readonly priority: number
  /** This leader has been slow without a break since then; null: it is not. */
  readonly slowSinceMs: number | null
  readonly holds: LeadershipHolds
  readonly candidates: readonly Candidate[]
}

/** Times until which leadership is to stay where it is. */
export interface LeadershipHolds {
  /** After an operator has moved it: no preference takes it away. */
  readonly manualUntilMs: number
  /** After a preference has moved it: neither preference nor slowness does again so soon. */
  readonly priorityUntilMs: number
  /** After a slow leader has given it away: the same. */
  readonly slowUntilMs: number
}

export interface Candidate {
  readonly id: NodeId
  readonly priority: number
  /** A connected voter that has nearly all of the log. */
  readonly isEligible: boolean
  /** Connected, answering and not slow without a break since then; null: it is not. */
  readonly healthySinceMs: number | null
  /** Far below the limits beyond which a leader is slow. */
  readonly isMuchHealthier: boolean
}

export interface LeadershipTiming {
  /** A member of a higher priority takes over after it has been healthy for so long. */
  readonly healthyMsMin: number
  /** A leader is slow when it has been for so long: one slow write is no reason. */
  readonly slowMsMin: number
  /** A new leader waits so long for what the one before has to say. */
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

export type HoldReason = 'manual' | 'priority' | 'slow'

/**
 * @returns where leadership is to go now, and why; null: it is where it should be, or may not be
 * moved yet.
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
 * Candidate of the highest priority; the first by id among equals, so that every look gives the
 * same.
 */
function highest(candidates: readonly Candidate[]): Candidate | null {
  let best: Candidate | null = null
  for (const candidate of candidates) {
    const isBetter =
      best === null ||
      candidate.priority > best.priority ||
      (candidate.priority === best.priority && candidate.id < best.id)
    if (isBetter) best = candidate
  }
  return best
}
