import type { Configuration as ConfigurationRecord } from '../../../proto/gen/membership_pb.ts'
import type { MemberView } from '../../ports/cluster-view.ts'
import { quorumValue } from '../../raft/quorum.ts'

/**
 * The latest time that the clocks of a quorum have reached, UTC ms, computed from the clock offsets
 * that members report. null while too few voters are connected.
 */
export function quorumClockMs(
  { members: records, outgoingVoters }: ConfigurationRecord,
  views: readonly MemberView[],
  nowMs: number,
): number | null {
  const voters = records.filter(({ voter }) => voter).map(({ id }) => id)
  if (voters.length === 0) return null
  const clocks = new Map(
    views.flatMap(({ id, connected, vitals }) =>
      connected && vitals !== null ? [[id, nowMs + vitals.clockOffsetMs] as const] : [],
    ),
  )
  const reached = quorumValue({ voters, learners: [], outgoingVoters }, (id) => clocks.get(id) ?? 0)
  return reached > 0 ? Math.floor(reached) : null
}
