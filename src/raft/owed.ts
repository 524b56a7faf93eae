import { isAtLeast } from './log.ts'
import type { RaftState } from './state.ts'
import type { Attestation, Position } from './types.ts'

/*
A log that was damaged and cut back may lack entries that this node acknowledged and others count on. `RaftState.owed` is the best
position that the log may have ended at. Until the log on disk is at least as up to date as that (paper 5.4.1), the node does
not campaign, and gives its vote only to whoever is: as it would with the log that it had. That is enough. Whoever held a
committed entry ended, from then on, in its term or a later one, and any log at least as up to date as such a one holds the
entry too (leader completeness, paper 5.4.3). Following and acknowledging go on meanwhile, for an acknowledgement speaks of
what is on disk now.

What the disk held last may be unknown: the debt is then the whole of the last term it knew of. The leader of such a term, or
of a later one, can say how much of that is real: its log holds all that it ever sent, and all that earlier leaders committed.
So the end of its log at any moment after this start covers every debt. That it was after this start is known by the start's
own number, which comes back with it.
*/

/**
 * End of the log as far as this node's promises go: what a candidate's log must not fall short
 * of.
 */
export function promisedLast({ owed, log }: RaftState): Position {
  return owed === null || isAtLeast(log.last, owed) ? log.last : owed
}

/** Called whenever more of the log is durable. */
export function settleIfPaid(state: RaftState): void {
  // @guard debt-is-settled-by-the-disk
  if (state.owed === null || !isAtLeast(state.onDisk.last, state.owed)) return
  state.owed = null
  state.disk.push({ type: 'settle', owed: null })
}

/** Takes the word of the leader of the term that this node is in. */
export function hearAttestation(state: RaftState, attested: Attestation | undefined): void {
  // @guard debt-is-covered-after-this-start
  if (state.owed === null || attested?.boot !== state.boot) return
  // Its first entry was of its own term, so its last one is.
  const covering = { term: state.term, index: attested.lastIndex }
  if (isAtLeast(covering, state.owed)) return
  state.owed = covering
  state.disk.push({ type: 'settle', owed: covering })
  settleIfPaid(state)
}
