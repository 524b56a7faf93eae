import { isLogUpToDate } from './log.ts'
import type { RaftState } from './state.ts'
import type { Attestation, Position } from './types.ts'

/*
 * A log that was damaged and truncated may lack entries that this node acknowledged and on which
 * others rely. `RaftState.owed` is the highest position at which the lost log may have ended (the
 * missing tail). Until the log on disk is at least as up to date as that position (paper 5.4.1),
 * the node does not campaign, and votes only for candidates that are at least as up to date. So it
 * votes exactly as it would with its undamaged log. That is enough: the log of a node that had a
 * committed entry always ends in the term of that entry or a later one, and every log that is at
 * least as up to date has the entry too (leader completeness, paper 5.4.3). The node still follows
 * and acknowledges meanwhile, because an acknowledgment is about the current disk.
 *
 * The last position of the lost log may be unknown. Then any entry of the last term that the node
 * knew of may be missing. The leader of that term, or of a later one, knows how much of it exists:
 * its log has every entry that it sent, and every entry that earlier leaders committed. So the end
 * of its log, at any moment after this start, covers every missing tail. The leader returns the
 * boot number of this start, which proves that the moment was after it.
 */

/**
 * The position with which a vote request is compared: the end of the log including the missing
 * tail. This node votes only for candidates whose log is at least as up to date.
 */
export function voteThresholdPosition({ owed, log }: RaftState): Position {
  return owed === null || isLogUpToDate(log.last, owed) ? log.last : owed
}

/**
 * Clears the missing tail once the durable log is at least as up to date as the end of that tail.
 */
export function clearMissingTailIfCovered(state: RaftState): void {
  // @guard debt-is-settled-by-the-disk
  if (state.owed === null || !isLogUpToDate(state.onDisk.last, state.owed)) return
  state.owed = null
  state.disk.push({ type: 'settle', owed: null })
}

/**
 * Limits the missing tail to the end of the log that the current leader has measured after this
 * node's start.
 */
export function applyAttestation(state: RaftState, attested: Attestation | undefined): void {
  // @guard debt-is-covered-after-this-start
  if (state.owed === null || attested?.boot !== state.boot) return
  // The term is the leader's own: a new leader first appends an entry of its term, so its last
  // entry has that term.
  const covering = { term: state.term, index: attested.lastIndex }
  if (isLogUpToDate(covering, state.owed)) return
  state.owed = covering
  state.disk.push({ type: 'settle', owed: covering })
  clearMissingTailIfCovered(state)
}
