import { electionOutcome } from './quorum.ts'
import { memberIds } from './configuration.ts'
import { isLogUpToDate } from './log.ts'
import { voteThresholdPosition } from './missing-tail.ts'
import { becomeCandidate, becomeFollower, becomeLeader, becomePreCandidate } from './role.ts'
import type { RaftState } from './state.ts'
import type { Message } from './types.ts'

type VoteRequest = Extract<Message, { type: 'voteRequest' }>
type VoteResponse = Extract<Message, { type: 'voteResponse' }>

/**
 * Starts a campaign when a follower or candidate that is eligible has not heard from a leader for
 * its random timeout. A sole voter does not wait for the timeout.
 */
export function tickElection(state: RaftState): void {
  state.electionElapsedTicks += 1
  state.leaderSilenceTicks += 1
  // Vote requests are sent only once this node's own vote is durable, so the timeout does not run
  // while that write is pending.
  if (state.ownVoteToken !== null) return
  if (state.electionElapsedTicks < state.electionDeadlineTicks && !isSoleVoter(state)) return
  // @guard 20-who-has-no-vote-campaigns:1, 21-neither-pre-vote-nor-quorum-check:1
  if (state.isEligible) campaign(state)
  else state.resetElectionTimer()
}

/** The election part of `RaftCore.quietTicks`. */
export function quietElectionTicks(state: RaftState): number {
  if (isSoleVoter(state)) return 0
  return Math.max(0, state.electionDeadlineTicks - state.electionElapsedTicks - 1)
}

/** A sole voter campaigns immediately, because no other node can lead. */
function isSoleVoter(state: RaftState): boolean {
  const { voters, outgoingVoters } = state.configuration
  return voters.length === 1 && outgoingVoters.length === 0 && voters[0] === state.id
}

/**
 * Whether this node is the leader or heard from one within an election timeout. Then this node
 * votes for another leader only in a leadership transfer (dissertation 4.2.3, 6.4.1), so that a
 * removed or partly disconnected node cannot disturb healthy nodes.
 */
export function hasLiveLeader(state: RaftState): boolean {
  if (state.role === 'leader') return true
  return state.leader !== null && state.leaderSilenceTicks < state.options.electionTimeoutTicks
}

function campaign(state: RaftState): void {
  becomePreCandidate(state)
  state.votes.set(state.id, true)
  requestVotes(state, true)
  countVotes(state)
}

function campaignForReal(state: RaftState, isTransfer: boolean): void {
  becomeCandidate(state)
  state.isTransferCampaign = isTransfer
  requestVotes(state, false)
}

/**
 * Requests votes. A request for a pre-vote asks whether the receiver would vote for this node in
 * the next term; it changes no term and no vote.
 */
function requestVotes(state: RaftState, pre: boolean): void {
  const { last } = state.log
  const term = pre ? state.term + 1 : state.term
  const transfer = state.isTransferCampaign
  // Vote requests wait until the own vote is durable. Otherwise a node could crash and campaign
  // again for the same term with a shorter log, using the answers to its first campaign.
  // @guard campaign-after-the-disk
  const afterToken = pre ? 0 : state.durability.hardStateToken
  for (const id of memberIds(state.configuration)) {
    if (id === state.id || state.configuration.learners.includes(id)) continue
    state.send(id, { type: 'voteRequest', pre, last, transfer }, afterToken, term)
  }
}

/**
 * Called when the leader asks this node to campaign immediately, without a pre-vote (leadership
 * transfer).
 */
export function onTimeoutNow(state: RaftState): void {
  if (state.role === 'follower' && state.isEligible) campaignForReal(state, true)
}

/**
 * Responds to a request for a vote or a pre-vote. A granted vote is sent only after it is durable.
 */
export function onVoteRequest(state: RaftState, message: VoteRequest): void {
  // @guard a-disk-holds-its-vote-by-store-id, log-comparison-in-votes
  // @guard log-that-owes-votes-as-before
  const isGrantable = state.holdsVote && isLogUpToDate(message.last, voteThresholdPosition(state))
  const isProtected = hasLiveLeader(state) && !message.transfer
  if (message.pre) {
    // @guard leader-check-on-pre-votes
    const granted = message.term > state.term && isGrantable && !isProtected
    // A granted pre-vote contains the requested term, so that the candidate counts it. A refusal
    // contains this node's term.
    const term = granted ? message.term : state.term
    const body = { type: 'voteResponse', pre: true, granted } as const
    // @guard pre-vote-reply-after-the-disk
    state.send(message.from, body, state.durability.hardStateToken, term)
    return
  }
  // @guard one-vote-a-term
  const isFree = state.votedFor === null || state.votedFor === message.from
  const granted = message.term === state.term && state.leader === null && isFree && isGrantable
  if (granted) {
    if (state.role !== 'follower') becomeFollower(state, state.term, null)
    state.setTermAndVote(state.term, message.from)
    // @guard given-vote-restarts-the-wait
    state.resetElectionTimer()
  }
  // A vote must survive a restart (paper 5.2), so it is sent only after the write. A refusal waits
  // too, because it may depend on a vote that is not durable yet.
  const body = { type: 'voteResponse', pre: false, granted } as const
  // @guard vote-reply-after-the-disk, 01-vote-leaves-before-it-is-durable
  state.send(message.from, body, state.durability.hardStateToken)
}

/**
 * Counts a vote. The votes of a quorum make this node the leader; the pre-votes of a quorum start
 * its election. Once the refusals leave no possible quorum, this node becomes a follower.
 */
export function onVoteResponse(state: RaftState, message: VoteResponse): void {
  const isAwaited = message.pre ? state.role === 'preCandidate' : state.role === 'candidate'
  if (!isAwaited) return
  if (message.pre && message.granted && message.term !== state.term + 1) return
  if (!state.votes.has(message.from)) state.votes.set(message.from, message.granted)
  countVotes(state)
}

/** Counts the node's own vote once it is durable. */
export function onOwnVoteDurable(state: RaftState): void {
  // @guard own-vote-counted-after-the-disk
  if (state.ownVoteToken === null || state.durability.durableToken < state.ownVoteToken) return
  state.ownVoteToken = null
  state.votes.set(state.id, true)
  countVotes(state)
}

function countVotes(state: RaftState): void {
  const outcome = electionOutcome(state.configuration, state.votes)
  if (outcome === 'lost') becomeFollower(state, state.term, null)
  if (outcome !== 'won') return
  if (state.role === 'preCandidate') campaignForReal(state, false)
  else becomeLeader(state)
}
