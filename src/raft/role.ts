import { assert } from '../lib/assert.ts'
import { appendAsLeader } from './leader-log.ts'
import { entryBytes } from './log.ts'
import { syncPeers } from './peers.ts'
import type { RaftState } from './state.ts'
import type { NodeId, Role, Term } from './types.ts'

const NO_BYTES = new Uint8Array(0)

/** Enters a role, and discards the state that belongs to the previous role or leadership. */
function enterRole(state: RaftState, role: Role, leader: NodeId | null): void {
  state.role = role
  state.leader = leader
  // @guard 22-pre-votes-kept-for-the-election
  state.votes.clear()
  state.ownVoteToken = null
  state.isTransferCampaign = false
  // @guard transfer-ends-with-its-leadership, 27-transfer-outlives-the-leadership:1
  state.transfer = null
  state.isHeartbeatDue = false
  state.progress.clear()
  state.departing = []
  state.logTime.clear()
  state.uncommittedBytes = 0
  // @guard reads-end-with-the-leadership
  state.reads.refuseAll()
  for (const { id } of state.held) {
    state.proposalResults.push({ id, ok: false, code: 'NOT_LEADER' })
  }
  state.held = []
  state.heldBytes = 0
  state.resetElectionTimer()
}

/** Makes this node a follower. Also called when a follower learns of a new term or leader. */
export function becomeFollower(state: RaftState, term: Term, leader: NodeId | null): void {
  const isNewTerm = term > state.term
  if (isNewTerm) {
    state.setTermAndVote(term, null)
    // Beyond the commit index, the log is not yet known to match the log of the new leader.
    // @guard match-forgotten-with-the-term
    state.matched = state.commit
  }
  enterRole(state, 'follower', leader)
  state.leaderSilenceTicks = 0
}

/**
 * Starts a pre-vote: the node asks whether it could win an election, without raising any node's
 * term (dissertation 9.6).
 */
export function becomePreCandidate(state: RaftState): void {
  assert(state.role !== 'leader', 'a leader does not campaign')
  enterRole(state, 'preCandidate', null)
}

/** Raises the term and votes for this node; both are durable before the vote counts. */
export function becomeCandidate(state: RaftState): void {
  assert(state.role !== 'leader', 'a leader does not campaign')
  state.setTermAndVote(state.term + 1, state.id)
  state.matched = state.commit
  enterRole(state, 'candidate', null)
  state.ownVoteToken = state.durability.hardStateToken
}

/** Becomes leader after an election, and appends an entry of the new term. */
export function becomeLeader(state: RaftState): void {
  assert(state.role === 'candidate', 'only a candidate is elected')
  enterRole(state, 'leader', state.id)
  state.heartbeatElapsedTicks = 0
  syncPeers(state)
  const { commit, log } = state
  for (let index = commit + 1; index <= log.lastIndex; index += 1) {
    state.uncommittedBytes += entryBytes(log.at(index))
  }
  // Entries of earlier terms commit only together with an entry of the new term (paper 5.4.2, 8 and
  // figure 8).
  // @guard entry-of-the-own-term-at-once
  appendAsLeader(state, 'noop', NO_BYTES)
  // Heartbeats go out immediately, because their responses report the clocks that limit the
  // timestamps of proposals.
  // @guard heartbeat-at-once
  state.isHeartbeatDue = true
}
