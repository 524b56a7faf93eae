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

/**
 * Inputs of a consensus thread. They are plain values, so that the main thread can send them to a
 * worker.
 */
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
  /** host:port by id; these take precedence over the addresses in the member records. */
  readonly addressHints: readonly (readonly [NodeId, string])[]
  readonly version: string
  readonly startedAtMs: number
  readonly apiAddresses: readonly ApiAddress[]
  /**
   * Position up to which the state has applied the log. The fields below contain values at that
   * position: the timestamp of its entry, the number of ms by which log time is behind that
   * timestamp, and the encoded membership.v1.Configuration.
   */
  readonly applied: Position
  readonly appliedTimeMs: number
  readonly appliedSetbackMs?: number
  /**
   * Configuration that applies at `applied`; empty while nothing is applied. In that case, the
   * configuration comes from the log or from `roster`.
   */
  readonly configuration: Uint8Array
  /**
   * Members from the membership cache, or from the controllers that admitted this member. A member
   * with an empty log and state starts with them.
   */
  readonly roster?: MembershipRecord | null
  /**
   * host:port of seeds. A name may resolve to many addresses, which the mesh probes while the link
   * to at least one member is not ready.
   */
  readonly seeds?: readonly string[]
  /**
   * address:port of the DNS servers that resolve the names of peers; if empty, the system's
   * resolver.
   */
  readonly resolvers?: readonly string[]
  /** File that stores the last resolved addresses of host names; null: they are only in memory. */
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
  /** Statistics of the disk, read for each status. */
  readonly diskVitals?: () => DiskStats
  /** Creates the mesh. Default: gRPC over mutual TLS. A simulation supplies its own network. */
  readonly mesh?: (options: MeshOptions, deps: MeshDeps, events: MeshEvents) => ConsensusMesh
  readonly loopDelay?: EventLoopDelayGauge
}
