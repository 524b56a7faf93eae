import { fromBinary } from '@bufbuild/protobuf'

import {
  type Configuration as ConfigurationRecord,
  ConfigurationSchema,
} from '../../proto/gen/membership_pb.ts'
import type { Clock } from '../lib/clock.ts'
import { EventLoopDelay, type EventLoopDelayGauge } from '../lib/runtime/event-loop-delay.ts'
import type { ClusterView, MemberView } from '../ports/cluster-view.ts'
import type { ReplicatedStateMachine } from '../ports/replicated-state-machine.ts'
import type { NodeHealth } from '../ports/node-health.ts'
import type { SoftState } from '../ports/soft-topics.ts'
import type { Index, NodeId } from '../raft/types.ts'
import type { CurrentConfiguration } from './cluster-node-deps.ts'
import type { StateDivergenceHandler } from './state-transfer/state-divergence-handler.ts'
import { AlarmWatch } from './health/alarm-watch.ts'
import type { Alarms } from './health/alarms.ts'
import type { ClusterNodeStatus } from './health/cluster-node-status.ts'
import { allVoterIds } from './health/failure-tolerance.ts'
import { nodeHealth } from './health/node-health.ts'
import { quorumClockMs } from './health/quorum-clock.ts'
import {
  type ConsensusThreadStatus,
  type MainThreadProgress,
  INITIAL_CONSENSUS_STATUS,
} from './thread-channel.ts'
import type { Logger } from './logger.ts'
import {
  type FormerMember,
  MemberDescriptions,
  type MemberDescriptionStore,
} from './soft-state/known-members.ts'
import { memberViews, type SelfDescription } from './soft-state/member-views.ts'
import { type PresenceReport, type Presence, PresenceTopic } from './soft-state/presence-topic.ts'

const PRIORITY_DEFAULT = 50

interface ClusterObserverDeps {
  readonly self: SelfDescription
  readonly machine: ReplicatedStateMachine
  readonly clock: Clock
  readonly log: Logger
  readonly soft: SoftState
  readonly memory: MemberDescriptionStore | null
  readonly loopDelay: EventLoopDelayGauge | undefined
  readonly alarms: Alarms
  readonly lowSpaceBytes: number
  readonly guard: () => Pick<StateDivergenceHandler, 'isQuarantined' | 'keepMembers' | 'ownDigest'>
  /**
   * True if this controller has failed or is about to stop. Other controllers then list it as
   * read-only, and their leadership balancers do not choose it.
   */
  readonly isFailing: () => boolean
  /** Called with the presence of another member. */
  readonly onPresence: (id: NodeId, presence: Presence) => void
}

/**
 * This controller's view of the cluster: the latest status of its consensus thread and the presence
 * of all members, including this one.
 */
export class ClusterObserver {
  readonly #deps: ClusterObserverDeps
  readonly #presence: PresenceTopic
  readonly #known: MemberDescriptions
  readonly #alarmWatch: AlarmWatch
  readonly #loopDelay: EventLoopDelayGauge
  #status = INITIAL_CONSENSUS_STATUS
  #statusAtMs: number
  #configuration: ConfigurationRecord
  #leaderSeenMs: number
  /** Monotonic time at which this controller last had applied every committed entry. */
  #caughtUpMs: number

  constructor(deps: ClusterObserverDeps) {
    const { clock, log } = deps
    this.#deps = deps
    this.#loopDelay = deps.loopDelay ?? new EventLoopDelay()
    this.#presence = new PresenceTopic(deps.soft, clock)
    this.#presence.onHeard = (id) => this.#onPresence(id)
    this.#known = new MemberDescriptions(deps.memory, clock, (err) =>
      log.warn({ err }, 'cannot write known-members.json'),
    )
    this.#alarmWatch = new AlarmWatch(deps.alarms, clock, deps.lowSpaceBytes)
    this.#configuration = deps.machine.persistedMark().configuration
    this.#statusAtMs = clock.monotonicMs()
    this.#leaderSeenMs = this.#statusAtMs
    this.#caughtUpMs = this.#statusAtMs
  }

  /** Latest status that the consensus thread has sent. */
  get status(): ConsensusThreadStatus {
    return this.#status
  }

  get memberIds(): readonly NodeId[] {
    return this.#configuration.members.map(({ id }) => id)
  }

  get voters(): readonly NodeId[] {
    return allVoterIds(this.#configuration)
  }

  /**
   * Commit index. It covers everything that this controller has applied, even before the next
   * status of the consensus thread.
   */
  get commit(): Index {
    return Math.max(this.#status.commit, this.#deps.machine.progress().applied)
  }

  get progress(): MainThreadProgress {
    return { ...this.#deps.machine.progress(), ...this.#deps.guard().ownDigest }
  }

  /** Lowest commit index of the connected members; Infinity if there are none. */
  get slowestCommit(): Index {
    const live = this.#status.peers.filter(({ isConnected }) => isConnected)
    return Math.min(...live.map(({ id }) => this.presenceOf(id)?.presence.commit ?? 0))
  }

  presenceOf(id: NodeId): PresenceReport | null {
    return this.#presence.of(id)
  }

  leaderContactMs(): number {
    if (this.#status.role === 'leader') return 0
    return Math.round(this.#deps.clock.monotonicMs() - this.#leaderSeenMs)
  }

  members(): readonly MemberView[] {
    return memberViews({
      record: this.#configuration,
      status: this.#status,
      ageMs: this.#deps.clock.monotonicMs() - this.#statusAtMs,
      self: this.#deps.self,
      own: this.#ownPresence(),
      heard: (id) => this.#presence.of(id),
      known: (id) => this.#known.of(id),
    })
  }

  formerMembers(): readonly FormerMember[] {
    return this.#known.former()
  }

  quorumClockMs(): number | null {
    return quorumClockMs(this.#configuration, this.members(), this.#deps.clock.nowMs())
  }

  configuration(): CurrentConfiguration {
    const { configurationIndex: index, isConfigurationCommitted: isCommitted } = this.#status
    return { record: this.#configuration, index, isCommitted }
  }

  /** @param outstanding number of proposed writes without an outcome. */
  ownStatus(outstanding: number): ClusterNodeStatus {
    const { role, term, leader } = this.#status
    const { commit, progress } = this
    return {
      role,
      term,
      leader,
      commit,
      ...progress,
      outstanding,
      alarms: this.#deps.alarms.list(),
    }
  }

  health(cluster: ClusterView, status: ClusterNodeStatus): NodeHealth {
    return nodeHealth({
      cluster,
      record: this.#configuration,
      status,
      vitals: this.#status.vitals,
      mainLoopDelayP99Ms: this.#loopDelay.p99Ms,
      behindMs: this.#deps.clock.monotonicMs() - this.#caughtUpMs,
    })
  }

  /** Publishes the presence of this member. */
  announce(): void {
    this.#presence.say(this.#ownPresence())
  }

  onStatus(status: ConsensusThreadStatus): void {
    const before = this.#status
    this.#status = status
    this.#statusAtMs = this.#deps.clock.monotonicMs()
    this.#alarmWatch.lookAtDebt(status.owed)
    if (status.leaderSilentMs !== null) {
      this.#leaderSeenMs = this.#statusAtMs - status.leaderSilentMs
    }
    if (Buffer.compare(before.configuration, status.configuration) !== 0) {
      this.#configuration = fromBinary(ConfigurationSchema, status.configuration)
    }
    this.announce()
    this.#noteMembers()
  }

  /**
   * Records the current time if this controller has applied every entry that it knows as committed.
   */
  watchLag(): void {
    const leader = this.#status.leader
    const known = leader === null ? 0 : (this.#presence.of(leader)?.presence.commit ?? 0)
    if (this.#deps.machine.progress().applied >= Math.max(known, this.#status.commit)) {
      this.#caughtUpMs = this.#deps.clock.monotonicMs()
    }
  }

  stop(): void {
    this.#loopDelay.stop()
  }

  /** Stores member descriptions for the next start. */
  async save(): Promise<void> {
    await this.#known.save()
  }

  #ownPresence(): Presence {
    const { self, clock, isFailing } = this.#deps
    const { role, term, leader, last, vitals } = this.#status
    return {
      ...this.progress,
      role: this.voters.includes(self.id) ? role : 'learner',
      term,
      leader,
      commit: this.commit,
      last: Math.max(last, this.commit),
      fsyncP99Ms: vitals.disk.fsync.p99Ms,
      loopDelayP99Ms: Math.max(this.#loopDelay.p99Ms, vitals.loopDelayP99Ms),
      priority: self.priority ?? PRIORITY_DEFAULT,
      clockMs: clock.nowMs(),
      version: self.version,
      startedAtMs: self.startedAtMs,
      apiAddresses: self.apiAddresses,
      isFailing: isFailing() || this.#deps.guard().isQuarantined,
    }
  }

  #noteMembers(): void {
    for (const { id, version, startedAtMs, apiAddresses, certificatePem } of this.#status.peers) {
      this.#known.note(id, { version, startedAtMs, apiAddresses, certificatePem })
    }
    // Before the first status, no members are known, and `keep` would drop all descriptions.
    if (this.#configuration.members.length > 0) {
      this.#known.keep(new Set(this.memberIds))
      this.#deps.guard().keepMembers(this.memberIds)
    }
    this.#alarmWatch.look(this.#configuration, this.members(), {
      freeBytes: this.#status.vitals.disk.freeBytes,
      logTimeMs: this.#deps.machine.logTimeMs,
    })
  }

  #onPresence(id: NodeId): void {
    const presence = this.#presence.of(id)?.presence
    if (presence !== undefined) this.#deps.onPresence(id, presence)
  }
}
