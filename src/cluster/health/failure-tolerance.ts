import type { Configuration as ConfigurationRecord } from '../../../proto/gen/membership_pb.ts'
import type { NodeId } from '../../raft/types.ts'

export interface Tolerance {
  readonly voters: number
  readonly votersConnected: number
  /** Voters that may be lost from now on while writes go on; negative: so many are missing. */
  readonly spare: number
  /** One sentence. */
  readonly nextRisk: string
}

/** All that vote, those of a change that is under way included. */
export function votersIn({ members, outgoingVoters }: ConfigurationRecord): readonly NodeId[] {
  const voters = members.filter(({ voter }) => voter).map(({ id }) => id)
  return [...new Set([...voters, ...outgoingVoters])]
}

/** Tolerance of a configuration; of a joint one, the half that bears less counts (Raft paper 6). */
export function toleranceNow(
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
    return `no quorum: writes wait until ${-spare} more of ${missing.join(', ')} are reachable`
  }
  if (voters === 1) return 'only one voter: writes stop while it is down'
  if (spare === 0) return 'losing one more voter stops writes'
  const few = spare === 1 ? 'one voter' : `${spare} voters`
  return `writes survive the failure of ${few}`
}
