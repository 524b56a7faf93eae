import type { Configuration as ConfigurationRecord } from '../../../proto/gen/membership_pb.ts'
import {
  type ApiAddress,
  type MemberProgress,
  type MemberView,
  ROUTER_ADDRESS_NAME,
} from '../../ports/cluster-view.ts'
import { FEATURE_LEVEL } from '../../ports/feature-level.ts'
import type { NodeId } from '../../raft/types.ts'
import type { KnownMember } from './known-members.ts'
import type { ConsensusThreadStatus, PeerReport } from '../thread-channel.ts'
import type { PresenceReport, Presence } from './presence-topic.ts'

/**
 * A controller's description of itself. The other columns of its row in the list of members come
 * from the configuration and from live data.
 */
export interface SelfDescription {
  readonly id: NodeId
  readonly version: string
  readonly startedAtMs: number
  readonly apiAddresses: readonly ApiAddress[]
  readonly certificatePem: string
  /**
   * host:port of the controller's mesh, as its configuration file has it now; absent: the address
   * in its member record.
   */
  readonly address?: string
  /** Priority, 0 to 100: the member with the highest priority should lead. Default 50. */
  readonly priority?: number
}

/**
 * The data from which the rows in the list of members are made. `ageMs`: time since the consensus
 * thread sent `status`.
 */
interface MemberSources {
  readonly record: ConfigurationRecord
  readonly status: ConsensusThreadStatus
  readonly ageMs: number
  readonly self: SelfDescription
  readonly own: Presence
  readonly heard: (id: NodeId) => PresenceReport | null
  readonly known: (id: NodeId) => KnownMember | null
}

/**
 * The members as this controller sees them: identity from the replicated configuration, status from
 * live data. Works without a quorum, so an isolated controller responds too.
 */
export function memberViews(sources: MemberSources): MemberView[] {
  const { record, status, self, ageMs } = sources
  const peers = new Map(status.peers.map((peer) => [peer.id, peer]))
  return record.members
    .map(({ id, address, voter, leaving }): MemberView => {
      const common = {
        id,
        address: addressNow(sources, peers.get(id), id) ?? address,
        voter: voter || (leaving && record.outgoingVoters.includes(id)),
        leader: status.leader === id,
      }
      if (id === self.id) return { ...common, ...selfPart(sources) }
      return { ...common, ...peerPart(peers.get(id), ageMs, sources.heard(id), sources.known(id)) }
    })
    .sort((a, b) => (a.id < b.id ? -1 : 1))
}

/**
 * Current address of a member, undefined if unknown. The member record contains only the address
 * from its last admission.
 */
function addressNow(
  { self }: MemberSources,
  peer: PeerReport | undefined,
  id: NodeId,
): string | undefined {
  if (id === self.id) return self.address
  return peer?.isConnected === true && peer.address !== '' ? peer.address : undefined
}

type LivePart = Omit<MemberView, 'id' | 'address' | 'voter' | 'leader'>

function selfPart({ self, status, own }: MemberSources): LivePart {
  return {
    connected: true,
    version: self.version,
    ...addressesIn(self.apiAddresses),
    certificatePem: self.certificatePem,
    featureLevel: FEATURE_LEVEL,
    startedAtMs: self.startedAtMs,
    lastContactMs: 0,
    progress: progressOf(own),
    readOnly: status.leader === null || own.isFailing,
    vitals: vitalsOf(own, 0),
  }
}

/**
 * If the last status is older than this, it does not show which members are connected at present.
 */
const STATUS_AGE_MS_MAX = 4000

function peerPart(
  peer: PeerReport | undefined,
  ageMs: number,
  heard: PresenceReport | null,
  known: KnownMember | null,
): LivePart {
  const connected = (peer?.isConnected ?? false) && ageMs <= STATUS_AGE_MS_MAX
  const presence = heard?.presence ?? null
  const said = peer !== undefined && peer.startedAtMs > 0 ? peer : known
  return {
    connected,
    version: presence?.version ?? said?.version ?? '',
    ...addressesIn(presence?.apiAddresses ?? said?.apiAddresses ?? []),
    certificatePem: said?.certificatePem ?? '',
    featureLevel: peer?.featureLevel ?? 0,
    startedAtMs: presence?.startedAtMs ?? said?.startedAtMs ?? 0,
    lastContactMs:
      peer === undefined || peer.silentMs === null ? null : Math.round(peer.silentMs + ageMs),
    progress: presence === null ? null : progressOf(presence),
    readOnly: !connected || presence === null || presence.leader === null || presence.isFailing,
    vitals: presence === null ? null : vitalsOf(presence, heard?.clockOffsetMs ?? 0),
  }
}

function addressesIn(
  addresses: readonly ApiAddress[],
): Pick<MemberView, 'apiAddresses' | 'routerAddresses'> {
  const isOfRouters = ({ api }: ApiAddress): boolean => api === ROUTER_ADDRESS_NAME
  return {
    apiAddresses: addresses.filter((address) => !isOfRouters(address)),
    routerAddresses: addresses.filter(isOfRouters).map(({ url }) => url),
  }
}

function progressOf(presence: Presence): MemberProgress {
  const { role, term, commit, applied, persisted, digestIndex, digest, entitiesDigest } = presence
  const shown = roleOf(role)
  return { role: shown, term, commit, applied, persisted, digestIndex, digest, entitiesDigest }
}

function vitalsOf(presence: Presence, clockOffsetMs: number): MemberView['vitals'] {
  const { leader, last, fsyncP99Ms, loopDelayP99Ms, priority, isFailing } = presence
  return { leaderId: leader, last, fsyncP99Ms, loopDelayP99Ms, priority, clockOffsetMs, isFailing }
}

const ROLES = ['leader', 'candidate', 'preCandidate', 'learner'] as const

/** The role of a member; `follower` for a role that this release does not know. */
function roleOf(role: string): MemberProgress['role'] {
  return ROLES.find((known) => known === role) ?? 'follower'
}
