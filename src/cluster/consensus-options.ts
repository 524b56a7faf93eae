import type { Clock } from '../lib/clock.ts'
import type { LoopDelayGauge } from '../lib/runtime/loop-delay.ts'
import type { ApiAddress } from '../ports/cluster-view.ts'
import type { MembershipRecord } from '../ports/membership-cache.ts'
import type { DiskVitals } from '../ports/stats.ts'
import type { CoreOptions } from '../raft/options.ts'
import type { Disk, NodeId, Position, RestoredLog } from '../raft/types.ts'
import type { HostLink } from './link.ts'
import type { SnapshotSenderOptions } from './state-transfer/snapshot-sender.ts'
import type { MeshIdentity } from './mesh/mesh-service.ts'
import type { MeshEvents, MeshOptions, MeshParts } from './mesh/mesh-parts.ts'
import type { HostMesh } from './mesh/mesh.ts'

/** All that a consensus thread must be told; plain values, so that it can cross to a worker. */
export interface ConsensusOptions {
  readonly selfId: NodeId
  readonly clusterId: string
  readonly generation: number
  /** 16 bytes. */
  readonly storeId: Uint8Array
  readonly trustDomain: string
  readonly identity: MeshIdentity
  /** host:port to listen on for peers. */
  readonly bind: string
  /** host:port under which peers reach this member. */
  readonly advertise: string
  /** host:port by id; they go before what the member records say. */
  readonly addressHints: readonly (readonly [NodeId, string])[]
  readonly version: string
  readonly startedAtMs: number
  readonly apiAddresses: readonly ApiAddress[]
  /**
   * Position of the state, the stamp there, how far log time is behind it, and the
   * membership.v1.Configuration in force there, encoded.
   */
  readonly applied: Position
  readonly appliedTimeMs: number
  readonly appliedSetbackMs?: number
  /** Empty while nothing is applied: a formed log then begins with it. */
  readonly configuration: Uint8Array
  /**
   * Members that were kept beside them, or given by those who admitted this member; what a log and
   * a state that are empty start from.
   */
  readonly roster?: MembershipRecord | null
  /**
   * host:port each; a name may stand for many addresses, and each is asked who is there while
   * members are missing.
   */
  readonly seeds?: readonly string[]
  /**
   * address:port of the DNS servers that names of peers are asked of; the system's way when empty.
   */
  readonly resolvers?: readonly string[]
  /** Hash of the options that must be equal on every controller. */
  readonly sharedOptionsSha256?: Uint8Array
  readonly tickMs?: number
  readonly core?: Partial<CoreOptions>
  readonly snapshots?: Partial<SnapshotSenderOptions>
}

export interface ConsensusParts {
  readonly link: HostLink
  readonly disk: Disk
  readonly restored: RestoredLog
  readonly clock: Clock
  /** How the disk has been; asked with each status. */
  readonly diskVitals?: () => DiskVitals
  /** Absent: gRPC over mutual TLS. A simulation brings a network of its own. */
  readonly mesh?: (options: MeshOptions, parts: MeshParts, events: MeshEvents) => HostMesh
  readonly loopDelay?: LoopDelayGauge
}
