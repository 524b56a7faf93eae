import type { Member } from '../../../proto/gen/membership_pb.ts'
import type { CallRequest, CallResponse, ForwardFrame, Hello } from '../../../proto/gen/mesh_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Random } from '../../lib/random.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import type { PeerCaller } from '../peer-channel.ts'
import type { AddressBook } from './addresses.ts'
import type { Logger } from '../logger.ts'
import type { RaftContent } from '../message-codec.ts'
import type { PeerTrust } from './handshake.ts'
import type { MeshRefusal } from './mesh-refusal.ts'
import type { MeshIdentity } from './mesh-service.ts'
import type { RollbackDetector } from './rollback-detector.ts'

export interface MeshOptions {
  readonly selfId: NodeId
  readonly clusterId: string
  readonly generation: number
  readonly trustDomain: string
  /** host:port to listen on for peers. */
  readonly bind: string
  readonly identity: MeshIdentity
  /** Hello of this member, first on every stream, as it stands when it is asked for. */
  readonly hello: () => Hello
  /** False for moments in which `hello` would say less than what has been promised. */
  readonly canDial?: () => boolean
  readonly members: readonly Member[]
  /** Index as of which `members` are known to be committed; told to those who are refused. */
  readonly configurationIndex?: Index
  readonly book: AddressBook
  /** Absent: peers are held to what they say from now on. */
  readonly witness?: RollbackDetector
  /** See {@link SeedFinder}. */
  readonly seeds?: readonly string[]
  /** address:port of the DNS servers that every name is asked of; the system's way when empty. */
  readonly resolvers?: readonly string[]
  /**
   * Bytes of Raft frames that may wait for one peer. Beyond it they are dropped: the core sends
   * again.
   */
  readonly raftQueueBytesMax?: number
  readonly forwardQueueBytesMax?: number
  /** A peer silent for longer counts as disconnected. */
  readonly silenceMsMax?: number
}

export interface MeshParts {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** Called in the order in which frames arrived on a stream. */
export interface MeshEvents {
  readonly onRaft: (from: NodeId, content: RaftContent, storeId: Uint8Array) => void
  /** `isAnswer`: it came back on the stream that this member dialled. */
  readonly onForward: (from: NodeId, frame: ForwardFrame['frame'], isAnswer: boolean) => void
  /** A controller that need not be a member asks something, outside the streams. */
  readonly onCall: (
    caller: PeerCaller,
    request: CallRequest,
    answer: (response: CallResponse) => void,
  ) => void
  /** The dialled streams to a peer stand, or have ended: what was forwarded before may be lost. */
  readonly onLink: (to: NodeId, isReady: boolean) => void
  /** A member, proven by its pinned key, does not let this one in. */
  readonly onRefusedByPeer: (by: NodeId, refusal: MeshRefusal) => void
  /** The address book has learned something from a peer itself. */
  readonly onAddresses: () => void
  /** `connected` of some peer may have changed. */
  readonly onPeers: () => void
}

export interface MeshPeer {
  readonly id: NodeId
  readonly address: string
  /** Streams stand both ways and the peer was heard from lately. */
  readonly isConnected: boolean
  /** Since it was last heard from; null when never in this process. */
  readonly silentMs: number | null
  /** Its Hello, as judged; null when it never said one. */
  readonly hello: Hello | null
  /** The leaf that it proved; empty before that. */
  readonly leafPem: string
}

/** Facts that a member with these options holds its peers to. */
export function rosterOf(options: MeshOptions, members: readonly Member[]): PeerTrust {
  const { selfId, clusterId, generation, trustDomain } = options
  const byId = new Map(members.map((member) => [member.id, member]))
  return { selfId, clusterId, generation, trustDomain, members: byId }
}
