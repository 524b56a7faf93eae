import type { PeerChannel } from '../peer-channel.ts'
import type { RecordOf, StateView } from '../../ports/state-view.ts'
import type { Configuration as ConfigurationRecord } from '../../../proto/gen/membership_pb.ts'
import type { Index, NodeId, Role } from '../../raft/types.ts'
import type { CurrentConfiguration } from '../cluster-node-deps.ts'
import type { PeerReport } from '../thread-channel.ts'

/** The part of the cluster node that membership management uses. */
export interface MembershipConsensus {
  readonly selfId: NodeId
  readonly peers: PeerChannel
  leaderId(): NodeId | null
  status(): { readonly role: Role; readonly commit: Index }
  configuration(): CurrentConfiguration
  peerStatuses(): readonly PeerReport[]
  /**
   * Confirms a linearizable read index.
   * @throws {Problem} CLUSTER_NO_LEADER, NODE_QUARANTINED or SERVER_TOO_MANY_REQUESTS.
   */
  readIndex(): Promise<Index>
  /**
   * Requests a change of the members.
   * @param basedOn index of the configuration from which the caller derived `target`; the Raft core
   * refuses the change when another configuration is current.
   * @returns null when the change was logged, or the Raft core's reason for the refusal.
   */
  changeConfiguration(target: ConfigurationRecord, basedOn: Index): Promise<string | null>
  /** @throws {Problem} TRANSFER_LEADERSHIP_ERROR. */
  transferLeadership(target: NodeId | null): Promise<void>
}

/** The part of the replicated state that membership management reads. */
export type MembershipStateView = Pick<StateView, 'get' | 'waitForApplied' | 'featureLevel'>

export function findAdmission(
  state: MembershipStateView,
  id: NodeId,
): RecordOf<'admission'> | undefined {
  return state.get('admission', id)
}
