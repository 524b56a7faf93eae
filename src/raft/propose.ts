import { ENTRY_BODY_BYTES_MAX, ENTRY_HEADER_BYTES } from './entry-codec.ts'
import type { ProposalRefusalCode } from './effects.ts'
import type { Proposal } from './input.ts'
import { appendAsLeader, nextEntryTimestampMs } from './leader-log.ts'
import type { RaftState } from './state.ts'

/**
 * Appends proposals as leader, holds them until the clocks of a quorum are known, or refuses them
 * with a reason.
 * @param nowMs the local clock, from which log time is derived.
 */
export function propose(state: RaftState, proposals: readonly Proposal[], nowMs: number): void {
  state.nowMs = nowMs
  // @guard proposals-held-until-clocks-are-known
  if (isClockUnknown(state)) {
    for (const proposal of proposals) hold(state, proposal)
    return
  }
  releaseHeldProposals(state)
  const timeMs = nextEntryTimestampMs(state)
  for (const proposal of proposals) log(state, proposal, timeMs)
}

/**
 * Appends the proposals that waited until the clocks of a quorum were known, in their order of
 * arrival.
 */
export function releaseHeldProposals(state: RaftState): void {
  if (state.held.length === 0 || isClockUnknown(state)) return
  const held = state.held
  state.held = []
  state.heldBytes = 0
  propose(state, held, state.nowMs)
}

/**
 * True until a quorum has answered a heartbeat of this leader. A new leader must not assign
 * timestamps to commands before it has compared its clock, which may be wrong, with the clocks of a
 * quorum.
 */
function isClockUnknown(state: RaftState): boolean {
  if (state.role !== 'leader') return false
  return state.logTime.quorumMs(state.configuration, state.id, state.nowMs) === null
}

function log(state: RaftState, proposal: Proposal, timeMs: number): void {
  const { id, data } = proposal
  const code = refusalCode(state, data, unappliedBytes(state))
  if (code !== null) {
    state.proposalResults.push({ id, ok: false, code })
    return
  }
  const { index, term } = appendAsLeader(state, 'command', data, timeMs)
  state.proposalResults.push({ id, ok: true, index, term })
}

function hold(state: RaftState, proposal: Proposal): void {
  const { id, data } = proposal
  const code = refusalCode(state, data, unappliedBytes(state) + state.heldBytes)
  if (code !== null) {
    state.proposalResults.push({ id, ok: false, code })
    return
  }
  state.held.push(proposal)
  state.heldBytes += data.length + ENTRY_HEADER_BYTES
}

/**
 * Bytes of entries that this node has logged and not yet applied. They stay in memory even if other
 * nodes have the entries.
 */
function unappliedBytes({ log, applied }: RaftState): number {
  return log.bytesBetween(applied, log.lastIndex)
}

/**
 * The reason to refuse a proposal; null if there is none. A proposal can be refused only before
 * logging: a logged entry may take effect, no matter which response its client received.
 */
function refusalCode(
  state: RaftState,
  data: Uint8Array,
  bytesAhead: number,
): ProposalRefusalCode | null {
  const { uncommittedBytesMax, applyLagEntriesMax } = state.options
  // @guard transfer-stops-proposals
  if (state.role !== 'leader' || state.transfer !== null) return 'NOT_LEADER'
  if (data.length > ENTRY_BODY_BYTES_MAX) return 'TOO_LARGE'
  if (state.commit - state.applied >= applyLagEntriesMax) return 'OVERLOADED'
  const bytes = data.length + ENTRY_HEADER_BYTES
  if (bytesAhead > 0 && bytesAhead + bytes > uncommittedBytesMax) return 'OVERLOADED'
  return null
}
