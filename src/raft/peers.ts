import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import { hasOtherStore, memberIds } from './configuration.ts'
import { Progress } from './progress.ts'
import type { RaftState } from './state.ts'

/**
 * Updates the leader's list of peers to the current configuration. For a peer with a new disk, the
 * leader forgets the progress of the old disk, because the new disk lacks the entries that the old
 * disk acknowledged.
 */
export function syncPeers(state: RaftState, before: ConfigurationRecord | null = null): void {
  const ids = memberIds(state.configuration)
  const { members } = state.memberships.current.record
  for (const [id, progress] of state.progress) {
    const old = before?.members.find((member) => member.id === id)
    const now = members.find((member) => member.id === id)
    const isReplaced = old !== undefined && now !== undefined && hasOtherStore(old, now)
    const isGone = !ids.includes(id)
    if (isGone) state.departing.push(progress)
    // @guard replaced-disk-starts-from-nothing
    if (isReplaced || isGone) state.progress.delete(id)
  }
  for (const id of ids) {
    if (id === state.id || state.progress.has(id)) continue
    state.progress.set(id, new Progress(id, state.log.lastIndex + 1, state.ticks))
  }
  if (state.transfer !== null && !state.configuration.voters.includes(state.transfer.target)) {
    state.transfer = null
  }
}
