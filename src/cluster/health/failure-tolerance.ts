import type { Configuration as ConfigurationRecord } from '../../../proto/gen/membership_pb.ts'
import type { NodeId } from '../../raft/types.ts'

interface Tolerance {
  readonly voters: number
  readonly votersConnected: number
  /**
   * Number of further voters that may fail without stopping writes. If negative, its absolute value
   * is the number of voters that a majority lacks.
   */
  readonly spare: number
  /**
   * Effect of the next failure, or of the present failures if writes have stopped, as one sentence.
   */
  readonly nextRisk: string
}

/** All voters, including the outgoing voters of a joint configuration. */
export function allVoterIds({ members, outgoingVoters }: ConfigurationRecord): readonly NodeId[] {
  const voters = members.filter(({ voter }) => voter).map(({ id }) => id)
  return [...new Set([...voters, ...outgoingVoters])]
}

/**
 * Tolerance of a configuration. In a joint configuration, both sets of voters need a majority, so
 * the set that tolerates less counts (Raft paper 6).
 */
export function configurationFailureTolerance(
  record: ConfigurationRecord,
  isConnected: (id: NodeId) => boolean,
): Tolerance {
  const incoming = record.members.filter(({ voter }) => voter).map(({ id }) => id)
  const halves = [incoming, record.outgoingVoters].filter((half) => half.length > 0)
  let spare = Infinity
  for (const half of halves) {
    const majority = Math.floor(half.length / 2) + 1
    spare = Math.min(spare, half.filter(isConnected).length - majority)
  }
  if (!Number.isFinite(spare)) spare = -1
  const all = new Set(halves.flat())
  const votersConnected = [...all].filter(isConnected).length
  const missing = [...all].filter((id) => !isConnected(id)).sort()
  return {
    voters: all.size,
    votersConnected,
    spare,
    nextRisk: sentenceOf(spare, all.size, missing),
  }
}

function sentenceOf(spare: number, voters: number, missing: readonly NodeId[]): string {
  if (voters === 0) return 'the members are not known here yet'
  if (spare < 0) {
    if (spare === -1) return `no quorum: writes wait until ${missing.join(' or ')} is reachable`
    const some = missing.length === -spare ? '' : `${-spare} of `
    return `no quorum: writes wait until ${some}${missing.join(', ')} are reachable`
  }
  if (voters === 1) return 'only one voter: writes stop while it is down'
  if (spare === 0) return 'losing one more voter stops writes'
  const few = spare === 1 ? 'one voter' : `${spare} voters`
  return `writes survive the failure of ${few}`
}
