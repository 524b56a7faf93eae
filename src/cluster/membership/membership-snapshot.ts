import type { Configuration as ConfigurationRecord } from '../../../proto/gen/membership_pb.ts'
import { admissionKeySha256 } from './member-keys.ts'
import type { NodeId } from '../../raft/types.ts'
import {
  findAdmission,
  type MembershipStateView,
  type MembershipConsensus,
} from './membership-consensus.ts'

/** The members and facts about them, as the leader knows them at one time. */
export interface MembershipSnapshot {
  /** The current configuration. A plan requires that it is committed and not joint. */
  readonly record: ConfigurationRecord
  readonly leaderId: NodeId
  /** The cluster's feature level. */
  readonly featureLevel: number
  /** Connected members, including the leader. */
  readonly inContact: ReadonlySet<NodeId>
  /**
   * Number of committed entries that a member may lack; null when the progress of the member is
   * unknown.
   */
  readonly lagEntries: (id: NodeId) => number | null
  /** SHA-256 of the key with which the id was admitted; null without an admission. */
  readonly admittedKeySha256: (id: NodeId) => Uint8Array | null
}

/**
 * Takes a snapshot. Its `leaderId` and `lagEntries` are correct only on the leader: other
 * controllers do not know the progress of members.
 */
export function takeMembershipSnapshot(
  consensus: MembershipConsensus,
  state: MembershipStateView,
): MembershipSnapshot {
  const { record } = consensus.configuration()
  const { commit } = consensus.status()
  const peers = consensus.peerStatuses()
  const matches = new Map(peers.map(({ id, matchIndex }) => [id, matchIndex]))
  const connected = peers.flatMap(({ id, isConnected }) => (isConnected ? [id] : []))
  return {
    record,
    leaderId: consensus.selfId,
    featureLevel: state.featureLevel,
    inContact: new Set([consensus.selfId, ...connected]),
    lagEntries: (id) => {
      if (id === consensus.selfId) return 0
      const match = matches.get(id) ?? 0
      return match === 0 ? null : Math.max(0, commit - match)
    },
    admittedKeySha256: (id) => {
      const admission = findAdmission(state, id)
      return admission === undefined ? null : admissionKeySha256(admission)
    },
  }
}
