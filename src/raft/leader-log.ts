import { assert } from '../lib/assert.ts'
import { entryBytes } from './log.ts'
import { syncPeers } from './peers.ts'
import type { RaftState } from './state.ts'
import type { Entry, EntryType } from './types.ts'

/**
 * Timestamp for the next entries, UTC ms: never earlier than the last timestamp, and ahead of a
 * quorum's clocks by no more than the allowed skew. After an operator has reset log time,
 * timestamps remain ahead of the clocks by `setbackMs`.
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
 * Appends entries. A leader never overwrites or deletes entries in its log (paper 5.3, leader
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
