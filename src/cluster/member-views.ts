import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import type { ApiAddress, MemberProgress, MemberView } from '../ports/cluster-view.ts'
import type { NodeId } from '../raft/types.ts'
import type { HostStatus, MachineProgress, PeerStatus } from './link.ts'

/** What a controller says of itself: the rest of its own line in the list is live. */
export interface SelfDescription {
  readonly id: NodeId
  readonly version: string
  readonly startedAtMs: number
  readonly apiAddresses: readonly ApiAddress[]
  readonly certificatePem: string
}

/**
 * The members as seen from here: who they are from the replicated configuration, how they are from what is live. No
 * quorum is asked, so every controller answers also when it is alone.
 *
 * @param ageMs since `status` was sent.
 */
export function memberViews(
  record: ConfigurationRecord,
  status: HostStatus,
  ageMs: number,
  self: SelfDescription,
  machine: MachineProgress,
): MemberView[] {
  const peers = new Map(status.peers.map((peer) => [peer.id, peer]))
  return record.members
    .map(({ id, address, voter, leaving }): MemberView => {
      const common = {
        id,
        address,
        voter: voter || (leaving && record.outgoingVoters.includes(id)),
        leader: status.leader === id,
      }
      if (id === self.id) return { ...common, ...selfPart(self, status, machine) }
      return { ...common, ...peerPart(peers.get(id), ageMs) }
    })
    .sort((a, b) => (a.id < b.id ? -1 : 1))
}

type LivePart = Omit<MemberView, 'id' | 'address' | 'voter' | 'leader'>

function selfPart(self: SelfDescription, status: HostStatus, machine: MachineProgress): LivePart {
  return {
    connected: true,
    version: self.version,
    apiAddresses: self.apiAddresses,
    certificatePem: self.certificatePem,
    startedAtMs: self.startedAtMs,
    lastContactMs: 0,
    progress: { role: status.role, term: status.term, commit: status.commit, ...machine },
  }
}

/** A status this old says nothing of who is connected now. */
const STATUS_AGE_MS_MAX = 4000

function peerPart(peer: PeerStatus | undefined, ageMs: number): LivePart {
  return {
    connected: (peer?.isConnected ?? false) && ageMs <= STATUS_AGE_MS_MAX,
    version: peer?.version ?? '',
    apiAddresses: peer?.apiAddresses ?? [],
    certificatePem: peer?.certificatePem ?? '',
    startedAtMs: peer?.startedAtMs ?? 0,
    lastContactMs:
      peer === undefined || peer.silentMs === null ? null : Math.round(peer.silentMs + ageMs),
    progress: progressOf(peer),
  }
}

function progressOf(peer: PeerStatus | undefined): MemberProgress | null {
  const presence = peer?.presence ?? null
  return presence === null ? null : { ...presence, role: roleOf(presence.role) }
}

const ROLES = ['leader', 'candidate', 'preCandidate', 'learner'] as const

/** A word of the peer's; one that this release does not know is shown as what it can not be more than. */
function roleOf(role: string): MemberProgress['role'] {
  return ROLES.find((known) => known === role) ?? 'follower'
}
