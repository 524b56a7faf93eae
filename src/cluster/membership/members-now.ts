import type { Configuration as ConfigurationRecord } from '../../../proto/gen/membership_pb.ts'
import { keySha256Of } from './record.ts'
import type { NodeId } from '../../raft/types.ts'
import { admissionOf, type AdmissionState, type Consensus } from './consensus.ts'

/** The members as the leader knows them at one moment. */
export interface MembersNow {
  /** Committed and not joint. */
  readonly record: ConfigurationRecord
  readonly leaderId: NodeId
  /** Level in force. */
  readonly featureLevel: number
  /** The leader itself included. */
  readonly inContact: ReadonlySet<NodeId>
  /** Committed entries that a member is not known to have; null when nothing is known of it. */
  readonly lagEntries: (id: NodeId) => number | null
  /** SHA-256 of the key that may come in by that id; null for none. */
  readonly admittedKeySha256: (id: NodeId) => Uint8Array | null
}

/** Worth something on the leader only: others do not know how far the members are. */
export function membersNow(consensus: Consensus, state: AdmissionState): MembersNow {
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
      const admission = admissionOf(state, id)
      return admission === undefined ? null : keySha256Of(admission)
    },
  }
}
