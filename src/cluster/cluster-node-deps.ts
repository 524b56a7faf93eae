import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import type { Clock } from '../lib/clock.ts'
import type { EventLoopDelayGauge } from '../lib/runtime/event-loop-delay.ts'
import type { AuditTrail } from '../ports/audit.ts'
import type { ReplicatedStateMachine } from '../ports/replicated-state-machine.ts'
import type { MembershipRecord } from '../ports/membership-cache.ts'
import type { Index } from '../raft/types.ts'
import type { QuarantineRecord } from './state-transfer/quarantine.ts'
import type { MainThreadLink, SelfRefusal } from './thread-channel.ts'
import type { Logger } from './logger.ts'
import type { ProposalOptions } from './replication/local-proposals.ts'
import type { RetentionOptions } from './state-transfer/log-retention.ts'
import type { MemberDescriptionStore } from './soft-state/known-members.ts'
import type { SelfDescription } from './soft-state/member-views.ts'

export interface ClusterNodeOptions extends ProposalOptions {
  readonly self: SelfDescription
  readonly clusterId: string
  readonly generation: number
  /** After this time without a leader, writes and linearizable reads are refused at once. */
  readonly leaderlessMsMax: number
  /** Maximum time until a leader confirms a linearizable read; after that: CLUSTER_NO_LEADER. */
  readonly readTimeoutMs: number
  /** Maximum time that a stop waits for outstanding writes. */
  readonly drainMsMax: number
  readonly retention: RetentionOptions
  /** Free bytes of the log's file system below which an alarm is raised. */
  readonly lowSpaceBytes?: number
}

export const defaultClusterNodeOptions = {
  /** Time after which a write without an outcome is rejected. */
  proposeTimeoutMs: 8000,
  leaderlessMsMax: 3000,
  readTimeoutMs: 5000,
  drainMsMax: 2000,
  /**
   * Maximum writes of this controller without an outcome, divided fairly among callers; above
   * that: 429 SERVER_TOO_MANY_REQUESTS.
   */
  outstandingMax: 4096,
  /**
   * Maximum distance from the oldest write without an outcome to the newest, in writes. It
   * bounds what apply must remember.
   */
  outstandingSpanMax: 65_536,
  /**
   * Maximum bytes of the writes without an outcome, divided fairly among callers; above that:
   * 429 SERVER_TOO_MANY_REQUESTS.
   */
  outstandingBytesMax: 32 * 1024 * 1024,
  retention: { entries: 20_000, bytes: 16 * 1024 * 1024, catchUpBytes: 96 * 1024 * 1024 },
} as const satisfies Partial<ClusterNodeOptions>

export interface ClusterNodeDeps {
  readonly link: MainThreadLink
  readonly machine: ReplicatedStateMachine
  readonly clock: Clock
  readonly log: Logger
  /** Called once, when this controller cannot continue and its process must stop. */
  readonly onFatal: (error: Error) => void
  /** Called when the cluster refuses this controller as a member; repeated while that continues. */
  readonly onSelfRefused?: (refusal: SelfRefusal) => void
  /**
   * Called with the members to store in the membership cache for the next start; at most once a
   * second.
   */
  readonly onRoster?: (roster: MembershipRecord) => void
  /**
   * Stores the descriptions of members. Absent: this controller forgets the descriptions when its
   * process ends.
   */
  readonly memory?: MemberDescriptionStore
  /** Resolves after everything derived from the old state has been rebuilt from the new one. */
  readonly onStateReplaced?: () => Promise<void>
  /**
   * Mark of a quarantine that survives a restart. Absent: a quarantine ends with the process, so
   * after a restart the state answers requests until it is compared again.
   */
  readonly quarantineMark?: QuarantineRecord
  readonly loopDelay?: EventLoopDelayGauge
  /** Absent: writes are not audited. */
  readonly audit?: AuditTrail
}

/** Configuration in force from the moment it is appended (Raft paper 6). */
export interface ConfigurationInForce {
  readonly record: ConfigurationRecord
  readonly index: Index
  readonly isCommitted: boolean
}
