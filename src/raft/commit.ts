import { assert } from '../lib/assert.ts'
import { encodeConfiguration, isJoint, leaveJointConfiguration } from './configuration.ts'
import { appendAsLeader } from './leader-log.ts'
import { sendHeartbeat } from './heartbeat.ts'
import { entryBytes } from './log.ts'
import { quorumValue } from './quorum.ts'
import { becomeFollower } from './role.ts'
import type { RaftState } from './state.ts'
import { mostUpToDateVoter } from './transfer.ts'
import type { Index } from './types.ts'

/**
 * Advances the commit index to the highest entry that is durable on a quorum. The leader counts its
 * own disk like any other disk, and only if it is a voter. Only entries of the leader's own term
 * are committed by counting replicas; earlier entries are committed together with them (paper
 * 5.4.2, figure 8).
 */
export function advanceCommit(state: RaftState): void {
  assert(state.role === 'leader', 'only a leader commits by counting')
  // @guard own-disk-counted-when-written, 19-leaving-leader-counts-itself
  // @guard 34-leader-counts-itself-before-its-disk:1
  const reached = quorumValue(state.configuration, (id) =>
    id === state.id ? state.durability.durableIndex : (state.progress.get(id)?.matchIndex ?? 0),
  )
  // @guard own-term-gate-on-commit, 06-old-term-committed-by-counting
  if (reached <= state.commit || state.log.termAt(reached) !== state.term) return
  for (let index = state.commit + 1; index <= reached; index += 1) {
    state.uncommittedBytes -= entryBytes(state.log.at(index))
  }
  raiseCommitIndex(state, reached)
  finishChange(state)
}

/** Raises the commit index, so that more entries can be applied. A lower index has no effect. */
export function raiseCommitIndex(state: RaftState, index: Index): void {
  if (index <= state.commit) return
  assert(index <= state.log.lastIndex, `commit ${index} is beyond the log`)
  state.commit = index
}

/**
 * Continues a change of members once its current configuration is committed, even if an earlier
 * leader began the change. After a joint configuration, appends the final one, which completes the
 * change (paper 6). After a final configuration in which this node is no voter, steps down.
 */
function finishChange(state: RaftState): void {
  const { index, record, configuration } = state.memberships.current
  if (index > state.commit) return
  // @guard farewell-after-the-commit
  sendRemovalEntry(state, index)
  // @guard joint-configuration-is-left
  if (isJoint(configuration)) {
    appendAsLeader(state, 'configuration', encodeConfiguration(leaveJointConfiguration(record)))
    return
  }
  // @guard removed-leader-goes
  if (!configuration.voters.includes(state.id)) stepDownAfterRemoval(state)
}

/**
 * A leader that a change removes, or makes a learner, stays leader until the change is committed
 * (paper 6), and then steps down. Before that, it sends a heartbeat with the commit index to all
 * peers, and asks the most up-to-date voter, if one answered recently, to campaign immediately.
 */
function stepDownAfterRemoval(state: RaftState): void {
  for (const progress of state.progress.values()) {
    sendHeartbeat(state, progress)
  }
  const successor = mostUpToDateVoter(state)
  if (successor !== null) state.send(successor, { type: 'timeoutNow' }, 0)
  becomeFollower(state, state.term, null)
}

/**
 * Sends each removed member the entries after its match index up to the configuration that removes
 * it, so that the member learns of its removal from its own log. The leader sends one append
 * request of the usual maximum size, and does not wait for a response. It sends nothing to a member
 * that needs compacted entries.
 *
 * The configuration is sent only after it is committed: a removed member that had the configuration
 * on disk earlier would have a longer log than members that need its vote, and could block every
 * election.
 */
function sendRemovalEntry(state: RaftState, configurationIndex: Index): void {
  const { log, options, departing, commit } = state
  state.departing = []
  for (const { id, matchIndex } of departing) {
    const term = log.termAt(matchIndex)
    if (term === null) continue
    const entries = log.slice(matchIndex + 1, configurationIndex, options.appendBytesMax)
    const previous = { term, index: matchIndex }
    state.send(id, { type: 'appendRequest', previous, commit, entries }, 0)
  }
}
