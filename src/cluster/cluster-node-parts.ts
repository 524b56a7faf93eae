import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import type { Clock } from '../lib/clock.ts'
import type { LoopDelayGauge } from '../lib/runtime/loop-delay.ts'
import type { AuditTrail } from '../ports/audit.ts'
import type { Machine } from '../ports/machine.ts'
import type { MembershipRecord } from '../ports/membership-cache.ts'
import type { Index } from '../raft/types.ts'
import type { QuarantineMark } from './state-transfer/quarantine.ts'
import type { MainLink, SelfRefusal } from './link.ts'
import type { Logger } from './logger.ts'
import type { ProposalOptions } from './replication/proposals.ts'
import type { RetentionOptions } from './state-transfer/log-retention.ts'
import type { MemberMemory } from './soft-state/known-members.ts'
import type { SelfDescription } from './soft-state/member-views.ts'

export interface ClusterNodeOptions extends ProposalOptions {
  readonly self: SelfDescription
  readonly clusterId: string
  readonly generation: number
  /** Without a leader for longer, writes and reads through one are refused at once. */
  readonly leaderlessMsMax: number
  readonly readTimeoutMs: number
  /** How long a stop waits for writes that are outstanding. */
  readonly drainMsMax: number
  readonly retention: RetentionOptions
  /** Less free space where the log is raises an alarm. */
  readonly lowSpaceBytes?: number
}

export const defaultClusterNodeOptions = {
  proposeTimeoutMs: 8000,
  leaderlessMsMax: 3000,
  readTimeoutMs: 5000,
  drainMsMax: 2000,
  outstandingMax: 4096,
  outstandingSpanMax: 65_536,
  outstandingBytesMax: 32 * 1024 * 1024,
  retention: { entries: 20_000, bytes: 16 * 1024 * 1024, catchUpBytes: 96 * 1024 * 1024 },
} as const satisfies Partial<ClusterNodeOptions>

export interface ClusterNodeParts {
  readonly link: MainLink
  readonly machine: Machine
  readonly clock: Clock
  readonly log: Logger
  /** Called once: this controller can do nothing more and its process must stop. */
  readonly onFatal: (error: Error) => void
  /** This controller is not, or no longer, a member as it is; told again while it goes on. */
  readonly onSelfRefused?: (refusal: SelfRefusal) => void
  /**
   * Called with the members to be kept beside log and state, for the next start; at most once a
   * second.
   */
  readonly onRoster?: (roster: MembershipRecord) => void
  /** Absent: what members said is forgotten with the process. */
  readonly memory?: MemberMemory
  /** Resolves once what was derived from the state before is derived from the one in its place. */
  readonly onStateReplaced?: () => Promise<void>
  /**
   * Absent: a state that was found wrong is compared anew after a restart, and answers until then.
   */
  readonly quarantineMark?: QuarantineMark
  readonly loopDelay?: LoopDelayGauge
  /** Absent: nothing is told of writes. */
  readonly audit?: AuditTrail
}

/** Configuration in force from the moment it is appended (Raft paper 6). */
export interface ConfigurationInForce {
  readonly record: ConfigurationRecord
  readonly index: Index
  readonly isCommitted: boolean
}
