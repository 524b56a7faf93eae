import { assert } from '../lib/assert.ts'
import { entryBytes } from './log.ts'
import { syncPeers } from './peers.ts'
import type { RaftState } from './state.ts'
import type { Entry, EntryType } from './types.ts'

/**
 * Timestamp for the next entries, UTC ms. It is never earlier than the last timestamp. Unless the
 * last timestamp is further ahead, it exceeds the clocks of a quorum by at most the allowed skew,
 * plus `setbackMs` after an operator has reset log time.
 */
export function nextEntryTimestampMs(state: RaftState): number {
  const lastMs = Math.max(state.timeFloorMs, state.log.lastTimeMs)
  const quorumMs = state.logTime.quorumMs(state.configuration, state.id, state.nowMs)
  if (quorumMs === null) return lastMs
  // @guard log-time-bounded-by-a-quorum, stamps-follow-the-setback
  const clockMs = Math.min(state.nowMs, quorumMs + state.options.clockSkewMaxMs) + state.setbackMs
  return state.logTime.advance(lastMs, clockMs)
}

/**
 * Appends an entry. A leader never overwrites or deletes entries in its log (paper 5.3, leader
 * append-only).
 */
export function appendAsLeader(
  state: RaftState,
  type: EntryType,
  data: Uint8Array,
  timeMs: number = nextEntryTimestampMs(state),
): Entry {
  assert(state.role === 'leader', 'only a leader makes entries')
  const entry: Entry = { index: state.log.lastIndex + 1, term: state.term, timeMs, type, data }
  state.log.append([entry])
  state.uncommittedBytes += entryBytes(entry)
  if (type === 'configuration') {
    const before = state.memberships.current.record
    state.memberships.append([entry])
    syncPeers(state, before)
  }
  return entry
}
