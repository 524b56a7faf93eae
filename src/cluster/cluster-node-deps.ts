import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import type { Clock } from '../lib/clock.ts'
import type { EventLoopDelayGauge } from '../lib/runtime/event-loop-delay.ts'
import type { AuditTrail } from '../ports/audit.ts'
import type { ReplicatedStateMachine } from '../ports/replicated-state-machine.ts'
import type { MembershipRecord } from '../ports/membership-cache.ts'
import type { Index } from '../raft/types.ts'
import type { QuarantineRecord } from './state-transfer/quarantine.ts'
import type { MainThreadLink, ClusterRefusal } from './thread-channel.ts'
import type { Logger } from './logger.ts'
import type { ProposalOptions } from './replication/local-proposals.ts'
import type { RetentionOptions } from './state-transfer/log-retention.ts'
import type { MemberDescriptionStore } from './soft-state/known-members.ts'
import type { SelfDescription } from './soft-state/member-views.ts'

export interface ClusterNodeOptions extends ProposalOptions {
  readonly self: SelfDescription
  readonly clusterId: string
  readonly generation: number
  /**
   * Time without a leader after which this controller immediately refuses writes and linearizable
   * reads.
   */
  readonly leaderlessMsMax: number
  /**
   * Maximum time until a leader confirms a linearizable read; after that, the read fails with
   * CLUSTER_NO_LEADER.
   */
  readonly readTimeoutMs: number
  /** Maximum time for which a stop waits for outstanding writes. */
  readonly drainMsMax: number
  readonly retention: RetentionOptions
  /** The controller raises an alarm when the log's file system has fewer free bytes. */
  readonly lowSpaceBytes: number
  /**
   * Maximum bytes of state per second that this controller sends to members that rebuild their
   * state.
   */
  readonly stateBytesPerSecond: number
}

export const defaultClusterNodeOptions = {
  /** Time after which a write without an outcome is rejected. */
  proposeTimeoutMs: 8000,
  leaderlessMsMax: 3000,
  readTimeoutMs: 5000,
  drainMsMax: 2000,
  /**
   * Maximum writes of this controller without an outcome, divided fairly among callers; further
   * writes fail with 429 SERVER_TOO_MANY_REQUESTS.
   */
  outstandingMax: 4096,
  /**
   * Maximum number of writes from the oldest write without an outcome to the newest write. This
   * number also limits how many sequence numbers of writes the state machine must store.
   */
  outstandingSpanMax: 65_536,
  /**
   * Maximum bytes of the writes without an outcome, divided fairly among callers; further writes
   * fail with 429 SERVER_TOO_MANY_REQUESTS.
   */
  outstandingBytesMax: 32 * 1024 * 1024,
  retention: { entries: 20_000, bytes: 16 * 1024 * 1024, catchUpBytes: 96 * 1024 * 1024 },
  stateBytesPerSecond: 64 * 1024 * 1024,
} as const satisfies Partial<ClusterNodeOptions>

export interface ClusterNodeDeps {
  readonly link: MainThreadLink
  readonly machine: ReplicatedStateMachine
  readonly clock: Clock
  readonly log: Logger
  /** Called once, when this controller cannot continue and its process must stop. */
  readonly onFatal: (error: Error) => void
  /**
   * Called when the cluster refuses this controller as a member; called again as long as that
   * continues.
   */
  readonly onSelfRefused?: (refusal: ClusterRefusal) => void
  /**
   * Called with the members to store in the membership cache for the next start; at most once a
   * second, and at a stop.
   */
  readonly onRoster?: (roster: MembershipRecord) => void
  /**
   * Stores the descriptions of members. Absent: this controller forgets the descriptions when its
   * process ends.
   */
  readonly memory?: MemberDescriptionStore
  /**
   * Rebuilds everything that is derived from the state, after a new state replaced the old one;
   * resolves when that is done.
   */
  readonly onStateReplaced?: () => Promise<void>
  /**
   * Record of a quarantine that survives a restart. Absent: a quarantine ends with the process, so
   * after a restart the controller answers requests from its state until other members have
   * compared it again.
   */
  readonly quarantineMark?: QuarantineRecord
  readonly loopDelay?: EventLoopDelayGauge
  /** Records the writes of this controller; absent: only the replicated audit log has them. */
  readonly audit?: AuditTrail
}

/**
 * The current configuration. A configuration applies from the moment it is appended to the log
 * (Raft paper 6).
 */
export interface CurrentConfiguration {
  readonly record: ConfigurationRecord
  readonly index: Index
  readonly isCommitted: boolean
}
