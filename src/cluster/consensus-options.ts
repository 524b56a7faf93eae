import type { Clock } from '../lib/clock.ts'
import type { EventLoopDelayGauge } from '../lib/runtime/event-loop-delay.ts'
import type { ApiAddress } from '../ports/cluster-view.ts'
import type { MembershipRecord } from '../ports/membership-cache.ts'
import type { DiskStats } from '../ports/stats.ts'
import type { CoreOptions } from '../raft/options.ts'
import type { Disk, NodeId, Position, RestoredLog } from '../raft/types.ts'
import type { ConsensusThreadLink } from './thread-channel.ts'
import type { SnapshotSenderOptions } from './state-transfer/snapshot-sender.ts'
import type { MeshIdentity } from './mesh/mesh-service.ts'
import type { MeshEvents, MeshOptions, MeshDeps } from './mesh/mesh-deps.ts'
import type { ConsensusMesh } from './mesh/mesh.ts'

/** Inputs of a consensus thread; plain values that can be posted to a worker. */
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
  /** host:port at which peers reach this member. */
  readonly advertise: string
  /** host:port by id; take precedence over the addresses in the member records. */
  readonly addressHints: readonly (readonly [NodeId, string])[]
  readonly version: string
  readonly startedAtMs: number
  readonly apiAddresses: readonly ApiAddress[]
  /**
   * Position of the applied state. The fields below contain, at that position: log time, how far
   * log time was set back, and the encoded membership.v1.Configuration.
   */
  readonly applied: Position
  readonly appliedTimeMs: number
  readonly appliedSetbackMs?: number
  /**
   * Configuration in force at `applied`; empty while nothing is applied. Then the configuration
   * comes from the log or from `roster`.
   */
  readonly configuration: Uint8Array
  /**
   * Members from the membership cache, or from the controllers that admitted this member. An empty
   * log and state start from them.
   */
  readonly roster?: MembershipRecord | null
  /**
   * host:port of seeds. A name may resolve to many addresses; each is probed while members are
   * missing.
   */
  readonly seeds?: readonly string[]
  /** address:port of DNS servers for names of peers; the system's resolver when empty. */
  readonly resolvers?: readonly string[]
  /**
   * File that stores the last resolved addresses of host names; null: they are kept in memory only.
   */
  readonly lastAddressesFile?: string | null
  /** Hash of the options that must be equal on every controller. */
  readonly sharedOptionsSha256?: Uint8Array
  readonly tickMs?: number
  readonly core?: Partial<CoreOptions>
  readonly snapshots?: Partial<SnapshotSenderOptions>
}

export interface ConsensusDeps {
  readonly link: ConsensusThreadLink
  readonly disk: Disk
  readonly restored: RestoredLog
  readonly clock: Clock
  /** Disk statistics, read with each status. */
  readonly diskVitals?: () => DiskStats
  /** Creates the mesh. Default: gRPC over mutual TLS. A simulation uses its own network. */
  readonly mesh?: (options: MeshOptions, deps: MeshDeps, events: MeshEvents) => ConsensusMesh
  readonly loopDelay?: EventLoopDelayGauge
}
