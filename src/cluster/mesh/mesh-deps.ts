import type { Member } from '../../../proto/gen/membership_pb.ts'
import type { CallRequest, CallResponse, ForwardFrame, Hello } from '../../../proto/gen/mesh_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Random } from '../../lib/random.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import type { PeerCaller } from '../peer-channel.ts'
import type { AddressBook } from './address-book.ts'
import type { Logger } from '../logger.ts'
import type { RaftStreamFrame } from '../message-codec.ts'
import type { PeerVerificationFacts } from './handshake.ts'
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
  /** Returns the current Hello of this member, the first frame on every stream. */
  readonly hello: () => Hello
  /**
   * False while `hello` might report a lower position than one that this member has already
   * acknowledged.
   */
  readonly canDial?: () => boolean
  readonly members: readonly Member[]
  /** Index of the newest configuration known to be committed; refused peers receive it. */
  readonly configurationIndex?: Index
  readonly book: AddressBook
  /**
   * Detects rolled-back disks, including disks that reported to earlier processes of this member.
   * Absent: this member compares only the reports of peers since its process started.
   */
  readonly witness?: RollbackDetector
  /** host:port of the seeds that {@link SeedFinder} probes. */
  readonly seeds?: readonly string[]
  /** address:port of DNS servers that resolve names; if empty, the system's resolver. */
  readonly resolvers?: readonly string[]
  /**
   * File that stores the last resolved addresses of host names (lib/runtime/cached-resolver.ts);
   * null: they are only in memory.
   */
  readonly lastAddressesFile?: string | null
  /**
   * Maximum bytes of Raft frames queued for one peer. The mesh drops further frames, and the Raft
   * core sends them again. Messages without entries may exceed the maximum by 1 MiB.
   */
  readonly raftQueueBytesMax?: number
  readonly forwardQueueBytesMax?: number
  /** Time without data after which a peer counts as disconnected. */
  readonly silenceMsMax?: number
}

export interface MeshDeps {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** Callbacks of the mesh, called in the order in which frames arrive on a stream. */
export interface MeshEvents {
  readonly onRaft: (from: NodeId, content: RaftStreamFrame, storeId: Uint8Array) => void
  /**
   * Called with each frame on a forward stream. `isAnswer`: the frame arrived on a stream that this
   * member dialed.
   */
  readonly onForward: (from: NodeId, frame: ForwardFrame['frame'], isAnswer: boolean) => void
  /**
   * Called with a single request outside of streams, from a controller that may not be a member.
   */
  readonly onCall: (
    caller: PeerCaller,
    request: CallRequest,
    answer: (response: CallResponse) => void,
  ) => void
  /**
   * Called when the dialed streams to a peer become ready, or close. When they close, frames
   * forwarded before may be lost.
   */
  readonly onLink: (to: NodeId, isReady: boolean) => void
  /** Called when a member that has proven its pinned key refuses this one. */
  readonly onRefusedByPeer: (by: NodeId, refusal: MeshRefusal) => void
  /** Called when the address book has learned an address from the peer itself. */
  readonly onAddresses: () => void
  /** Called when `isConnected` of a peer may have changed. */
  readonly onPeers: () => void
}

export interface MeshPeer {
  readonly id: NodeId
  readonly address: string
  /** True if streams are open in both directions, and the peer sent data recently. */
  readonly isConnected: boolean
  /** Time since the last data from the peer; null if there was none in this process. */
  readonly silentMs: number | null
  /** The last Hello of the peer that this member accepted; null if there was none. */
  readonly hello: Hello | null
  /** The leaf certificate that the peer has proven; empty before the proof. */
  readonly leafPem: string
}

/**
 * Facts about this member and its cluster, from these options, with which this member compares its
 * peers.
 */
export function peerVerificationFacts(
  options: MeshOptions,
  members: readonly Member[],
): PeerVerificationFacts {
  const { selfId, clusterId, generation, trustDomain } = options
  const byId = new Map(members.map((member) => [member.id, member]))
  return { selfId, clusterId, generation, trustDomain, members: byId }
}
