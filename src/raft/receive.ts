import { hasMemberStore } from './configuration.ts'
import { hasLiveLeader, onTimeoutNow, onVoteRequest, onVoteResponse } from './election.ts'
import {
  respondToStaleLeader,
  onAppendRequest,
  onCommitNotice,
  onHeartbeatRequest,
  onSnapshot,
} from './follow.ts'
import { onAppendResponse, onHeartbeatResponse } from './replication.ts'
import { becomeFollower } from './role.ts'
import type { RaftState } from './state.ts'
import type { Message, NodeId } from './types.ts'

/**
 * Handles a message. Ignores messages to another node or from this node itself, and responses of a
 * node or disk that the configuration does not list. Applies the rules about terms to all others
 * (paper 5.1, and figure 2 "All servers").
 */
export function onMessage(state: RaftState, message: Message, storeId: Uint8Array | null): void {
  if (message.to !== state.id || message.from === state.id) return
  // @guard answers-of-no-member
  if (isAnswer(message) && !isCounted(state, message.from, storeId)) return
  if (message.term > state.term && !adoptTerm(state, message)) return
  // @guard message-of-an-older-term
  if (message.term < state.term && !isAnsweredBelowTerm(state, message)) return
  dispatch(state, message)
}

/**
 * Whether the current configuration lists the sender and its disk. Responses of a removed node with
 * a higher term must not depose the leader. Responses from a disk that is not listed do not count:
 * a replacement disk lacks the entries and promises of the lost disk, so it must not vote until a
 * configuration lists it.
 */
function isCounted(state: RaftState, from: NodeId, storeId: Uint8Array | null): boolean {
  // @guard answers-of-another-disk
  return hasMemberStore(state.memberships.current.record, from, storeId)
}

function isAnswer(message: Message): boolean {
  const { type } = message
  return type === 'voteResponse' || type === 'appendResponse' || type === 'heartbeatResponse'
}

/**
 * Handles a later term in a message: adopts the term, unless the message is a request for a
 * pre-vote, grants one, or must be ignored.
 * @returns whether this node must handle the message further.
 */
function adoptTerm(state: RaftState, message: Message): boolean {
  switch (message.type) {
    case 'voteRequest':
      // @guard pre-vote-raises-no-term
      if (message.pre) return true
      // @guard leader-check-on-votes, 20-who-has-no-vote-campaigns:2
      // @guard 21-neither-pre-vote-nor-quorum-check:2
      if (hasLiveLeader(state) && !message.transfer) return false
      becomeFollower(state, message.term, null)
      return true
    case 'voteResponse':
      if (message.pre && message.granted) return true
      becomeFollower(state, message.term, null)
      return false
    case 'appendRequest':
    case 'heartbeatRequest':
    case 'commitNotice':
    case 'snapshot':
      becomeFollower(state, message.term, message.from)
      return true
    case 'appendResponse':
    case 'heartbeatResponse':
      // @guard answer-of-a-later-term
      becomeFollower(state, message.term, null)
      return false
    case 'timeoutNow':
      return false
  }
}

/**
 * Handles an earlier term in a message: responds to a leader of that term.
 * @returns whether this node must handle the message further.
 */
function isAnsweredBelowTerm(state: RaftState, message: Message): boolean {
  switch (message.type) {
    case 'voteRequest':
    case 'snapshot':
      return true
    case 'appendRequest':
    case 'heartbeatRequest':
      // @guard stale-leader-is-answered
      respondToStaleLeader(state, message.from)
      return false
    // @guard 12-late-acknowledgement-of-an-earlier-term-counts
    case 'voteResponse':
    case 'appendResponse':
    case 'heartbeatResponse':
    case 'commitNotice':
    case 'timeoutNow':
      return false
  }
}

function dispatch(state: RaftState, message: Message): void {
  switch (message.type) {
    case 'voteRequest':
      return onVoteRequest(state, message)
    case 'voteResponse':
      return onVoteResponse(state, message)
    case 'appendRequest':
      return onAppendRequest(state, message)
    case 'appendResponse':
      return onAppendResponse(state, message)
    case 'heartbeatRequest':
      return onHeartbeatRequest(state, message)
    case 'heartbeatResponse':
      return onHeartbeatResponse(state, message)
    case 'commitNotice':
      return onCommitNotice(state, message)
    case 'timeoutNow':
      // @guard campaign-ordered-by-the-leader-alone
      return state.leader === message.from ? onTimeoutNow(state) : undefined
    case 'snapshot':
      return onSnapshot(state, message)
  }
}
