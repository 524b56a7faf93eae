import type { RaftState } from './state.ts'
import type { NodeId } from './types.ts'

/**
 * The most up-to-date voter other than this node, of those that answered this leader, or were added
 * to its peers, within an election timeout; null when there is none.
 */
export function mostUpToDateVoter(state: RaftState): NodeId | null {
  let best: NodeId | null = null
  let bestMatch = -1
  for (const progress of state.progress.values()) {
    const silenceTicks = state.ticks - progress.lastContactTick
    if (silenceTicks > state.options.electionTimeoutTicks) continue
    if (!state.configuration.voters.includes(progress.id) || progress.matchIndex <= bestMatch) {
      continue
    }
    best = progress.id
    bestMatch = progress.matchIndex
  }
  return best
}

/**
 * Leadership transfer (dissertation 3.10): the leader refuses proposals while the target catches
 * up, then asks the target to campaign immediately. It abandons the transfer after an election
 * timeout. No effect if this node is not the leader, or no other voter can be the target.
 */
export function startTransfer(state: RaftState, target: NodeId | null): void {
  if (state.role !== 'leader') return
  const chosen = target ?? mostUpToDateVoter(state)
  if (chosen === null || chosen === state.id || chosen === state.transfer?.target) return
  if (!state.configuration.voters.includes(chosen)) return
  state.transfer = { target: chosen, startedTick: state.ticks, isTimeoutNowSent: false }
  continueTransfer(state)
}

/** Called when the target may have caught up. */
export function continueTransfer(state: RaftState): void {
  const { transfer } = state
  if (transfer === null || transfer.isTimeoutNowSent) return
  // @guard transfer-waits-for-the-target
  if (state.progress.get(transfer.target)?.matchIndex !== state.log.lastIndex) return
  transfer.isTimeoutNowSent = true
  state.send(transfer.target, { type: 'timeoutNow' }, 0)
}

/**
 * Abandons a transfer that takes too long, and starts a transfer when the leader's disk stalls.
 */
export function tickTransfer(state: RaftState): void {
  const { diskStallTicks, electionTimeoutTicks } = state.options
  if (state.transfer !== null) {
    const ageTicks = state.ticks - state.transfer.startedTick
    // @guard transfer-is-given-up, 27-transfer-outlives-the-leadership:2
    if (ageTicks >= electionTimeoutTicks) state.transfer = null
    return
  }
  // A leader whose disk stalls must transfer leadership: it still commits through the other nodes
  // but cannot apply anything itself.
  const stalledSince = state.durability.oldestPendingTick
  if (stalledSince !== null && state.ticks - stalledSince >= diskStallTicks) {
    // @guard slow-disk-hands-over
    startTransfer(state, null)
  }
}
