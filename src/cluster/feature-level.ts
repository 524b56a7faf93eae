import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, FeatureLevelRaiseSchema } from '../../proto/gen/command_pb.ts'
import { SYSTEM_ACTOR } from '../ports/actor.ts'
import type { Proposer } from '../ports/proposer.ts'
import type { NodeId } from '../raft/types.ts'
import type { PeerReport } from './thread-channel.ts'
import { refusalProblem } from '../lib/refusal-problem.ts'

/** Feature levels that this controller and its peers support, as far as this controller knows. */
export interface KnownFeatureLevels {
  readonly selfId: NodeId
  /** The newest feature level that this release supports. */
  readonly own: number
  readonly peers: readonly Pick<PeerReport, 'id' | 'isConnected' | 'featureLevel'>[]
}

/**
 * The highest feature level that every voter supports. 0 while a voter is disconnected: it may
 * return with an older release, which would have to stop if the level had been raised.
 */
export function commonVoterFeatureLevel(
  voters: readonly NodeId[],
  known: KnownFeatureLevels,
): number {
  const peers = new Map(known.peers.map((peer) => [peer.id, peer]))
  const levels = voters.map((id) => {
    if (id === known.selfId) return known.own
    const peer = peers.get(id)
    return peer?.isConnected === true ? peer.featureLevel : 0
  })
  return levels.length === 0 ? 0 : Math.min(...levels)
}

/**
 * Proposes to raise the feature level.
 * @throws {Problem} when the state machine refuses the level, or the outcome is unknown.
 */
export async function proposeFeatureLevel(proposer: Proposer, level: number): Promise<void> {
  const payload = toBinary(FeatureLevelRaiseSchema, create(FeatureLevelRaiseSchema, { level }))
  const kind = CommandKind.FEATURE_LEVEL_RAISE
  const { outcome } = await proposer.propose({ kind, payload, actor: SYSTEM_ACTOR })
  if (!outcome.ok) throw refusalProblem(outcome)
}
