import { fromBinary, toBinary } from '@bufbuild/protobuf'

import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import type { Clock } from '../lib/clock.ts'
import { LoopDelay } from '../lib/loop-delay.ts'
import type { LoopDelayGauge } from '../lib/loop-delay.ts'
import { Problem } from '../lib/problems.ts'
import type { ClusterView, MemberView } from '../ports/cluster-view.ts'
import type { AuditTrail } from '../ports/audit.ts'
import type { AppliedEntry, Machine } from '../ports/machine.ts'
import type { NodeHealth } from '../ports/node-health.ts'
import type { PeerChannel } from '../ports/peer-channel.ts'
import type { Applied, ProposalInput, Proposer } from '../ports/proposer.ts'
import type { RosterRecord } from '../ports/roster.ts'
import type { SoftState } from '../ports/soft-state.ts'
import type { HostVitals } from '../ports/vitals.ts'
import type { Entry, Index, NodeId, Position } from '../raft/types.ts'
import { AlarmWatch } from './health/alarm-watch.ts'
import { Alarms } from './health/alarms.ts'
import { ApplyQueue } from './proposals/apply-queue.ts'
import { CatchUps } from './snapshots/catch-up.ts'
import { votersIn } from './health/failure-tolerance.ts'
import type { GatewayStatus } from './health/gateway-status.ts'
import { HostRequests } from './host-requests.ts'
import { KnownMembers } from './soft-state/known-members.ts'
import type { MemberMemory } from './soft-state/known-members.ts'
import { isOut, NOTHING_HEARD } from './link.ts'
import type {
  HostEvent,
  HostStatus,
  MachineProgress,
  MainLink,
  PeerStatus,
  SelfRefusal,
} from './link.ts'
import { LogRetention } from './snapshots/log-retention.ts'
import type { RetentionOptions } from './snapshots/log-retention.ts'
import type { Log } from './log.ts'
import type { MeshIdentity } from './transport/mesh-service.ts'
import { memberViews } from './soft-state/member-views.ts'
import type { SelfDescription } from './soft-state/member-views.ts'
import { nodeHealth } from './health/node-health.ts'
import { PeerDesk } from './transport/peer-desk.ts'
import { PresenceBoard } from './soft-state/presence.ts'
import type { Presence } from './soft-state/presence.ts'
import { ProposalDesk } from './proposals/proposal-desk.ts'
import type { ProposalDeskOptions } from './proposals/proposal-desk.ts'
import type { QuarantineMark } from './divergence/quarantine.ts'
import { ReadRounds } from './proposals/read-rounds.ts'
import { SnapshotDesk } from './snapshots/snapshot-desk.ts'
import { defaultSoftStateOptions, SoftStateChannel } from './soft-state/soft-state.ts'
import { StateGuard } from './divergence/state-guard.ts'

export interface GatewayOptions extends ProposalDeskOptions {
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

export const defaultGatewayOptions = {
  proposeTimeoutMs: 8000,
  leaderlessMsMax: 3000,
  readTimeoutMs: 5000,
  drainMsMax: 2000,
  outstandingMax: 4096,
  outstandingSpanMax: 65_536,
  outstandingBytesMax: 32 * 1024 * 1024,
  retention: { entries: 20_000, bytes: 16 * 1024 * 1024, catchUpBytes: 96 * 1024 * 1024 },
} as const satisfies Partial<GatewayOptions>

export interface GatewayParts {
  readonly link: MainLink
  readonly machine: Machine
  readonly clock: Clock
  readonly log: Log
  /** Called once: this controller can do nothing more and its process must stop. */
  readonly onFatal: (error: Error) => void
  /** This controller is not, or no longer, a member as it is; told again while it goes on. */
  readonly onSelfRefused?: (refusal: SelfRefusal) => void
  /** To be kept beside log and state, for the next start; at most once a second. */
  readonly onRoster?: (roster: RosterRecord) => void
  /** Absent: what members said is forgotten with the process. */
  readonly memory?: MemberMemory
  /** Resolves once what was derived from the state before is derived from the one in its place. */
  readonly onStateReplaced?: () => Promise<void>
  /** Absent: a state that was found wrong is compared anew after a restart, and answers until then. */
  readonly quarantineMark?: QuarantineMark
  readonly loopDelay?: LoopDelayGauge
  /** Absent: nothing is told of writes. */
  readonly audit?: AuditTrail
}

/** From the moment it is appended (Raft paper 6). */
export interface ConfigurationInForce {
  readonly record: ConfigurationRecord
  readonly index: Index
  readonly isCommitted: boolean
}

const SWEEP_MS = 50
/** The host is told how far apply is this often, or after so many entries: it only bounds a lag that is far longer. */
const PROGRESS_MS = 10
const PROGRESS_ENTRIES = 1024

const PRIORITY_DEFAULT = 50

/**
 * Main's door to the cluster. A write becomes a Command with this controller's origin, goes to whichever controller
 * leads, again when that one is lost, and is answered by what this controller itself applies. Created stopped;
 * `start` lets the host speak.
 */
export class Gateway implements Proposer, ClusterView {
  readonly #options: GatewayOptions
  readonly #parts: GatewayParts
  readonly #proposals: ProposalDesk
  readonly #reads: ReadRounds
  readonly #snapshots: SnapshotDesk
  readonly #applyQueue: ApplyQueue
  readonly #peers: PeerDesk
  readonly #retention: LogRetention
  readonly #catchUps: CatchUps
  readonly #requests: HostRequests
  readonly #soft: SoftStateChannel
  readonly #presence: PresenceBoard
  readonly #known: KnownMembers
  readonly #alarmWatch: AlarmWatch
  readonly #guard: StateGuard
  readonly #loopDelay: LoopDelayGauge
  /** What an operator must know of; other parts of this controller raise theirs here. */
  readonly alarms: Alarms
  /** Monotonic: apply was last known to have all that is committed. */
  #caughtUpMs: number
  #status = NOTHING_HEARD
  #statusAtMs: number
  #configuration: ConfigurationRecord
  #leaderSeenMs: number
  /** Of the last entry applied. */
  #logTimeMs: number
  #sweep: NodeJS.Timeout | null = null
  #progressTimer: NodeJS.Timeout | null = null
  #reportedApplied: Index = 0
  #onStarted: (port: number) => void = () => undefined
  #onStopped: () => void = () => undefined
  #hasFailed = false
  #isLeaving = false

  constructor(options: GatewayOptions, parts: GatewayParts) {
    const { link, machine, clock } = parts
    this.#options = options
    this.#parts = parts
    this.#loopDelay = parts.loopDelay ?? new LoopDelay()
    this.#proposals = new ProposalDesk(options, {
      selfId: options.self.id,
      clock,
      send: (proposals) => link.post({ type: 'propose', proposals }, [proposals.buffer]),
      hasLeader: () => this.#status.leader !== null,
      featureLevel: () => machine.featureLevel,
      // A wrong state knows nothing of what came of a write.
      onAudited: (record) => (this.#guard.isOut ? undefined : parts.audit?.applied(record)),
    })
    this.#requests = new HostRequests((command) => link.post(command))
    this.#reads = new ReadRounds({
      clock,
      timeoutMs: options.readTimeoutMs,
      ask: (id) => link.post({ type: 'readIndex', id }),
    })
    this.#peers = new PeerDesk(
      (command) => link.post(command),
      (method, err) => parts.log.error({ method, err }, 'a call of a peer failed'),
    )
    this.alarms = new Alarms(clock, parts.log)
    this.#retention = new LogRetention(options.retention)
    this.#catchUps = new CatchUps(this.alarms, clock, (index) => this.#retention.isNear(index))
    this.#alarmWatch = new AlarmWatch(this.alarms, clock, options.lowSpaceBytes)
    this.#guard = this.#makeGuard()
    const [catchUps, guard] = [this.#catchUps, this.#guard]
    this.#snapshots = new SnapshotDesk(machine, link, { catchUps, guard })
    this.#soft = new SoftStateChannel(
      // Not the count of its store's starts, which begins anew with another disk.
      { ...defaultSoftStateOptions, selfId: options.self.id, epoch: options.self.startedAtMs },
      { peers: this.#peers, clock, members: () => this.#memberIds() },
    )
    this.#presence = new PresenceBoard(this.#soft, clock)
    this.#presence.onHeard = (id) => this.#onPresence(id)
    this.#known = new KnownMembers(parts.memory ?? null, clock, (err) =>
      parts.log.warn({ err }, 'cannot write known-members.json'),
    )
    this.#applyQueue = new ApplyQueue({
      machine,
      clock,
      onApplied: (entry, applied) => this.#onApplied(entry, applied),
      onProgress: () => this.#planProgress(),
      onFailed: (error) => this.#onApplyFailed(error),
    })
    const { configuration, timeMs } = machine.persistedMark()
    this.#configuration = configuration
    this.#logTimeMs = timeMs
    if (this.#guard.isHeld) this.#applyQueue.pause()
    this.#statusAtMs = clock.monotonicMs()
    this.#leaderSeenMs = this.#statusAtMs
    this.#caughtUpMs = this.#statusAtMs
    machine.onPersisted = (position) => this.#onPersisted(position)
    machine.onFailed = (error) => this.#fail(error)
    link.onMessage = (event) => this.#onEvent(event)
  }

  get selfId(): NodeId {
    return this.#options.self.id
  }

  get clusterId(): string {
    return this.#options.clusterId
  }

  /** To the main threads of the other controllers. */
  get peers(): PeerChannel {
    return this.#peers
  }

  /** State that is live rather than kept, shared with the other controllers. */
  get soft(): SoftState {
    return this.#soft
  }

  /** How consensus, mesh and disk of this process have been. */
  get vitals(): HostVitals {
    return this.#status.vitals
  }

  /** The feature level in force, as applied here. */
  get featureLevel(): number {
    return this.#parts.machine.featureLevel
  }

  get generation(): number {
    return this.#options.generation
  }

  /** The state of this controller is not that of the others: nothing may be answered from it. */
  get isQuarantined(): boolean {
    return this.#guard.isOut
  }

  /** @returns the port the mesh listens on. Never settles when the host fails: that is told through `onFatal`. */
  async start(): Promise<number> {
    this.#sweep = setInterval(() => this.#onSweep(), SWEEP_MS)
    this.#soft.start()
    this.#parts.link.post({ type: 'start' })
    this.#reportProgress()
    return await new Promise((resolve) => {
      this.#onStarted = resolve
    })
  }

  /** Before a planned stop: tells the others that this controller is no longer one to lead or to write through. */
  announceLeave(): void {
    this.#isLeaving = true
    this.#presence.say(this.#ownPresence())
  }

  /**
   * Before a planned stop: a leader hands over, and what is outstanding gets a little time to be answered through the
   * next one. Resolves in bounded time, whether or not it went well.
   */
  async handOver(): Promise<void> {
    const hasHeir = this.#status.peers.some(({ isConnected }) => isConnected)
    if (this.#hasFailed || !hasHeir) return
    if (this.#status.role === 'leader') {
      const because = await this.#requests.ask((id) => ({
        type: 'transferLeadership',
        id,
        target: null,
      }))
      if (because !== null) this.#parts.log.warn({}, `leadership transfer failed: ${because}`)
    }
    const endMs = this.#parts.clock.monotonicMs() + this.#options.drainMsMax
    while (this.#proposals.count > 0 && this.#parts.clock.monotonicMs() < endMs) {
      await new Promise((resolve) => setTimeout(resolve, SWEEP_MS))
    }
  }

  /**
   * Ends the host; what is outstanding is given up. Resolves when the host has let go of its disk. The machine stays
   * open.
   */
  async stop(): Promise<void> {
    const stopped = new Promise<void>((resolve) => {
      this.#onStopped = resolve
    })
    // What was published last still goes out.
    this.#soft.tick()
    await this.#known.save()
    this.#parts.link.post({ type: 'stop' })
    await stopped
    this.#end()
    await this.#guard.stop()
    this.#parts.link.close()
  }

  members(): readonly MemberView[] {
    const ageMs = this.#parts.clock.monotonicMs() - this.#statusAtMs
    return memberViews({
      record: this.#configuration,
      status: this.#status,
      ageMs,
      self: this.#options.self,
      own: this.#ownPresence(),
      heard: (id) => this.#presence.of(id),
      known: (id) => this.#known.of(id),
    })
  }

  /** How this controller is, and the cluster as it sees it; local, whatever has failed. */
  health(): NodeHealth {
    return nodeHealth({
      cluster: this,
      record: this.#configuration,
      status: this.status(),
      vitals: this.#status.vitals,
      mainLoopDelayP99Ms: this.#loopDelay.p99Ms,
      behindMs: this.#parts.clock.monotonicMs() - this.#caughtUpMs,
    })
  }

  /** The configuration in force here; the record is the caller's to clone before changing it. */
  configuration(): ConfigurationInForce {
    const { configurationIndex: index, isConfigurationCommitted: isCommitted } = this.#status
    return { record: this.#configuration, index, isCommitted }
  }

  /** The members other than this one as the mesh sees them, sorted by id. */
  peerStatuses(): readonly PeerStatus[] {
    return this.#status.peers
  }

  /** The mesh proves itself with it from now on; standing connections stay. */
  setIdentity(identity: MeshIdentity): void {
    this.#parts.link.post({ type: 'identity', identity })
  }

  leaderId(): NodeId | null {
    return this.#status.leader
  }

  leaderContactMs(): number {
    if (this.#status.role === 'leader') return 0
    return Math.round(this.#parts.clock.monotonicMs() - this.#leaderSeenMs)
  }

  status(): GatewayStatus {
    const { role, term, leader } = this.#status
    return {
      role,
      term,
      leader,
      commit: this.#commit(),
      ...this.#progress(),
      outstanding: this.#proposals.count,
      alarms: this.alarms.list(),
    }
  }

  async readIndex(): Promise<Index> {
    this.#refuseWithoutLeader()
    this.#refuseInQuarantine()
    return await this.#reads.read()
  }

  async propose(input: ProposalInput): Promise<Applied> {
    this.#refuseWithoutLeader()
    this.#refuseInQuarantine()
    return await this.#proposals.propose(input)
  }

  /**
   * Hands leadership to `target`, or to whichever voter is furthest. Resolves when the leader has begun; rejects with
   * TRANSFER_LEADERSHIP_ERROR otherwise. Only the leader's own controller can.
   */
  async transferLeadership(target: NodeId | null): Promise<void> {
    const because = await this.#requests.ask((id) => ({ type: 'transferLeadership', id, target }))
    if (because !== null) throw new Problem('TRANSFER_LEADERSHIP_ERROR', { detail: because })
  }

  /**
   * Asks for other members: those wanted in the end, without outgoing voters. Only the leader's own controller can.
   * @param basedOn index of the configuration that it was derived from: refused when that is no longer in force.
   * @returns null when it was logged, or why it was not.
   * @throws {Problem} NODE_QUARANTINED.
   */
  async changeConfiguration(
    target: ConfigurationRecord,
    basedOn: Index | null = null,
  ): Promise<string | null> {
    // Whom to let in and whom to trust with a vote is read from the state.
    this.#refuseInQuarantine()
    const configuration = toBinary(ConfigurationSchema, target)
    return await this.#requests.ask((id) => ({
      type: 'changeConfiguration',
      id,
      configuration,
      basedOn,
    }))
  }

  #refuseWithoutLeader(): void {
    const isLeaderless =
      this.#status.leader === null && this.leaderContactMs() > this.#options.leaderlessMsMax
    if (isLeaderless || this.#hasFailed) throw new Problem('CLUSTER_NO_LEADER')
  }

  /** What is judged with a wrong state must not be written. */
  #refuseInQuarantine(): void {
    if (this.#guard.isOut) throw new Problem('NODE_QUARANTINED')
  }

  #onEvent(event: HostEvent): void {
    switch (event.type) {
      case 'started':
        this.#onStarted(event.port)
        break
      case 'committed':
        this.#applyQueue.push(event.entries)
        break
      case 'refused':
        this.#proposals.onRefused(event.sequences, event.code)
        break
      case 'handoverLost':
        this.#proposals.proposeAgain()
        break
      case 'readIndex':
        this.#reads.answer(event.id, event.index)
        break
      case 'answered':
        this.#requests.answer(event.id, event.because)
        break
      case 'status':
        this.#onStatus(event)
        break
      case 'restore':
        void this.#restore(event.id)
        break
      case 'note':
      case 'called':
      case 'callAnswered':
      case 'link':
        this.#peers.handle(event)
        break
      case 'selfRefused':
        // No leader listens to it any more, nor does any entry come that would tell.
        if (isOut(event)) this.#proposals.close()
        this.#parts.onSelfRefused?.(event)
        break
      case 'roster':
        this.#parts.onRoster?.(event.roster)
        break
      case 'log':
        this.#parts.log[event.level](event.fields, event.message)
        break
      case 'fatal':
        this.#fail(new Error(event.because))
        break
      case 'stopped':
        this.#onStopped()
        break
      default:
        this.#snapshots.handle(event)
    }
  }

  #onSweep(): void {
    if (!this.#hasFailed && this.#guard.sweep()) this.#reportProgress()
    this.#watchLag()
    this.#proposals.sweep()
    this.#reads.sweep()
  }

  #onStatus(status: HostStatus): void {
    const before = this.#status
    this.#status = status
    this.#statusAtMs = this.#parts.clock.monotonicMs()
    this.#alarmWatch.lookAtDebt(status.owed)
    if (status.leaderSilentMs !== null) {
      this.#leaderSeenMs = this.#statusAtMs - status.leaderSilentMs
    }
    if (Buffer.compare(before.configuration, status.configuration) !== 0) {
      this.#configuration = fromBinary(ConfigurationSchema, status.configuration)
    }
    this.#presence.say(this.#ownPresence())
    this.#catchUps.look(status)
    this.#noteMembers()
    if (status.leader === before.leader && status.term === before.term) return
    this.#parts.log.info(
      { term: status.term, leader: status.leader, role: status.role },
      status.leader === null
        ? `no leader in term ${status.term}`
        : `new leader ${status.leader} (term ${status.term})`,
    )
    if (status.leader === null) return
    this.#proposals.proposeAgain()
    this.#proposals.sendParked()
    this.#reads.retry()
  }

  #onApplied(entry: Entry, applied: AppliedEntry): void {
    this.#retention.note(entry)
    this.#logTimeMs = entry.timeMs
    this.#guard.onApplied(entry.index)
    this.#proposals.settle(applied)
  }

  #makeGuard(): StateGuard {
    const { machine, clock, log, quarantineMark } = this.#parts
    return new StateGuard({
      ...{ machine, clock, log, alarms: this.alarms, peers: this.#peers, selfId: this.selfId },
      derive: async () => await this.#parts.onStateReplaced?.(),
      mark: quarantineMark ?? null,
      voters: () => votersIn(this.#configuration),
      leaderId: () => this.#status.leader,
      isFailing: (id) => this.#presence.of(id)?.presence.isFailing ?? false,
      receivedChunks: () => this.#snapshots.receivedChunks,
      dropReceived: () => this.#snapshots.dropReceived(),
      onQuarantine: () => this.#onQuarantine(),
      hold: () => this.#applyQueue.pause(),
      letGo: () => this.#applyQueue.resumeAfter(machine.progress().applied),
      onReplaced: () => this.#onReplaced(),
      onRelease: () => this.#presence.say(this.#ownPresence()),
      handOver: () =>
        void this.#requests.ask((id) => ({ type: 'transferLeadership', id, target: null })),
      onFatal: (error) => this.#fail(error),
    })
  }

  /** What a wrong state made of the writes that are outstanding is not told to those who wait for them. */
  #onQuarantine(): void {
    this.#proposals.giveUp()
    this.#snapshots.endSendings('state differs from the majority')
    this.#presence.say(this.#ownPresence())
  }

  /** The state of another member is in place; the log was whole all the time. */
  #onReplaced(): void {
    this.#logTimeMs = Math.max(this.#logTimeMs, this.#parts.machine.persistedMark().timeMs)
    this.#applyQueue.resumeAfter(this.#parts.machine.progress().applied)
    this.#reportProgress()
  }

  #memberIds(): readonly NodeId[] {
    return this.#configuration.members.map(({ id }) => id)
  }

  /** What is applied here is committed, also before the host's next word says so. */
  #commit(): Index {
    return Math.max(this.#status.commit, this.#parts.machine.progress().applied)
  }

  #ownPresence(): Presence {
    const { self } = this.#options
    const { role, term, leader, last, vitals } = this.#status
    const isVoter = votersIn(this.#configuration).includes(self.id)
    return {
      ...this.#progress(),
      role: isVoter ? role : 'learner',
      term,
      leader,
      commit: this.#commit(),
      last: Math.max(last, this.#commit()),
      fsyncP99Ms: vitals.disk.fsync.p99Ms,
      loopDelayP99Ms: Math.max(this.#loopDelay.p99Ms, vitals.loopDelayP99Ms),
      priority: self.priority ?? PRIORITY_DEFAULT,
      clockMs: this.#parts.clock.nowMs(),
      version: self.version,
      startedAtMs: self.startedAtMs,
      apiAddresses: self.apiAddresses,
      isFailing: this.#hasFailed || this.#isLeaving || this.#guard.isOut,
    }
  }

  #noteMembers(): void {
    for (const { id, version, startedAtMs, apiAddresses, certificatePem } of this.#status.peers) {
      this.#known.note(id, { version, startedAtMs, apiAddresses, certificatePem })
    }
    // Before the first status nobody knows who the members are.
    if (this.#configuration.members.length > 0) {
      const ids = this.#memberIds()
      this.#known.keep(new Set(ids))
      this.#guard.keepMembers(ids)
    }
    this.#alarmWatch.look(this.#configuration, this.members(), this.#status.vitals.disk.freeBytes)
  }

  #watchLag(): void {
    const { applied } = this.#parts.machine.progress()
    const leader = this.#status.leader
    const known = leader === null ? 0 : (this.#presence.of(leader)?.presence.commit ?? 0)
    if (applied >= Math.max(known, this.#status.commit)) {
      this.#caughtUpMs = this.#parts.clock.monotonicMs()
    }
  }

  #onPresence(id: NodeId): void {
    const presence = this.#presence.of(id)?.presence
    if (presence === undefined) return
    const { startedAtMs, applied } = presence
    this.#parts.link.post({ type: 'heardApplied', peer: id, startedAtMs, applied })
    this.#guard.onPresence(id, presence)
  }

  #progress(): MachineProgress {
    return { ...this.#parts.machine.progress(), ...this.#guard.ownDigest }
  }

  #planProgress(): void {
    if (this.#applyQueue.applied - this.#reportedApplied >= PROGRESS_ENTRIES) {
      this.#reportProgress()
    } else {
      this.#progressTimer ??= setTimeout(() => this.#reportProgress(), PROGRESS_MS)
    }
  }

  #reportProgress(): void {
    if (this.#progressTimer !== null) clearTimeout(this.#progressTimer)
    this.#progressTimer = null
    this.#reportedApplied = this.#applyQueue.applied
    const applied = this.#reportedApplied
    this.#parts.link.post({ type: 'progress', applied, timeMs: this.#logTimeMs })
  }

  #onPersisted(position: Position): void {
    this.#applyQueue.goOn()
    this.#reportProgress()
    const live = this.#status.peers.filter(({ isConnected }) => isConnected)
    const slowest = Math.min(...live.map(({ id }) => this.#presence.of(id)?.presence.commit ?? 0))
    const cut = this.#retention.cut(position.index, slowest, this.#catchUps.neededAfter)
    if (cut === null) return
    this.#catchUps.noteCut(cut.index)
    this.#parts.link.post({ type: 'compact', position: cut })
  }

  async #restore(id: number): Promise<void> {
    this.#applyQueue.pause()
    this.#guard.beginReplacing()
    try {
      await this.#snapshots.restore(id)
      await this.#parts.onStateReplaced?.()
      this.#retention.reset()
      this.#guard.endReplacing()
      this.#logTimeMs = this.#parts.machine.persistedMark().timeMs
      this.#applyQueue.restartAfter(this.#parts.machine.progress().applied)
      this.#reportProgress()
      // An entry of ours may be inside the snapshot, and its outcome will not come by: a second time tells.
      this.#proposals.proposeAgain()
    } catch (error) {
      this.#fail(new Error(`cannot install the received snapshot: ${String(error)}`))
    }
  }

  #onApplyFailed(error: Error): void {
    this.alarms.raise('APPLY_STOPPED', error.message)
    this.#fail(error)
  }

  #fail(error: Error): void {
    if (this.#hasFailed) return
    this.#end()
    this.#parts.onFatal(error)
  }

  #end(): void {
    this.#hasFailed = true
    if (this.#sweep !== null) clearInterval(this.#sweep)
    this.#sweep = null
    if (this.#progressTimer !== null) clearTimeout(this.#progressTimer)
    this.#applyQueue.stop()
    this.#proposals.close()
    this.#reads.abandon()
    this.#snapshots.close()
    this.#soft.stop()
    this.#loopDelay.stop()
    this.#peers.close()
    this.#requests.close()
  }
}
