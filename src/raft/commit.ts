import { assert } from '../lib/assert.ts'
import { encodeConfiguration, isJoint, leaveJoint } from './configuration.ts'
import { appendAsLeader } from './leader-log.ts'
import { sendHeartbeat } from './heartbeat.ts'
import { entryBytes } from './log.ts'
import { quorumValue } from './quorum.ts'
import { becomeFollower } from './role.ts'
import type { RaftState } from './state.ts'
import { furthestVoter } from './transfer.ts'
import type { Index } from './types.ts'

/**
 * Commits what a quorum holds durably, the leader's own disk counted like any other and only if the
 * leader is a voter. Only an entry of the leader's own term is committed by counting; those before
 * it follow (paper 5.4.2, figure 8).
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
  commitTo(state, reached)
  finishChange(state)
}

export function commitTo(state: RaftState, index: Index): void {
  if (index <= state.commit) return
  assert(index <= state.log.lastIndex, `commit ${index} is beyond the log`)
  state.commit = index
}

/**
 * A committed joint configuration is left by itself, also by a leader that inherited it (paper 6).
 */
function finishChange(state: RaftState): void {
  const { index, record, configuration } = state.memberships.current
  if (index > state.commit) return
  // @guard farewell-after-the-commit
  bidFarewell(state, index)
  // @guard joint-configuration-is-left
  if (isJoint(configuration)) {
    appendAsLeader(state, 'configuration', encodeConfiguration(leaveJoint(record)))
    return
  }
  // @guard removed-leader-goes
  if (!configuration.voters.includes(state.id)) retire(state)
}

/**
 * A leader that is no longer a voter leads until that is committed (paper 6), then goes: the others
 * learn of the commit, and one of them is asked to take over at once.
 */
function retire(state: RaftState): void {
  for (const progress of state.progress.values()) {
    sendHeartbeat(state, progress)
  }
  const successor = furthestVoter(state)
  if (successor !== null) state.send(successor, { type: 'timeoutNow' }, 0)
  becomeFollower(state, state.term, null)
}

/**
 * Members that are left out are sent the entry that says so, once and without being waited for: it
 * is how they learn of it from their own log. Only now that it is committed: one who had it on disk
 * before that would have the longer log, and could keep those who still need its vote from ever
 * electing anyone.
 */
function bidFarewell(state: RaftState, configurationIndex: Index): void {
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
