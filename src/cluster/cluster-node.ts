import { periodicScheduler } from '../lib/periodic-scheduler.ts'
import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import { Problem } from '../lib/problems.ts'
import type { ClusterView, MemberView } from '../ports/cluster-view.ts'
import type { NodeHealth } from '../ports/node-health.ts'
import type { PeerChannel } from './peer-channel.ts'
import type { AppliedProposal, ProposalInput, Proposer } from '../ports/proposer.ts'
import { type SoftState, softTopics } from '../ports/soft-topics.ts'
import type { ConsensusStats } from '../ports/stats.ts'
import type { Index, NodeId } from '../raft/types.ts'
import type {
  ClusterNodeOptions,
  ClusterNodeDeps,
  CurrentConfiguration,
} from './cluster-node-deps.ts'
import { ClusterObserver } from './cluster-observer.ts'
import { Alarms } from './health/alarms.ts'
import type { ClusterNodeStatus } from './health/cluster-node-status.ts'
import { ConsensusRequests } from './replication/consensus-requests.ts'
import {
  type ConsensusThreadEvent,
  type ConsensusThreadStatus,
  isPermanentlyRefused,
  type PeerReport,
} from './thread-channel.ts'
import { LocalProposals } from './replication/local-proposals.ts'
import { ReadIndexRounds } from './replication/read-index-rounds.ts'
import type { FormerMember } from './soft-state/known-members.ts'
import { defaultSoftStateOptions, SoftStateChannel } from './soft-state/soft-state.ts'
import { StateFollower } from './state-follower.ts'
import type { MeshIdentity } from './mesh/mesh-service.ts'
import { PeerRpc } from './peer/peer-rpc.ts'

const SWEEP_MS = 250
/** Interval of the check for outstanding writes during a stop. */
const DRAIN_LOOK_MS = 100

/**
 * Interface of the main thread to the cluster. It turns a write into a command that names this
 * controller as its origin and sends the command to the leader. If the leader fails, the cluster
 * node sends the command to the next leader. It responds once this controller has applied the
 * command. `start` makes the consensus thread begin its work.
 */
export class ClusterNode implements Proposer, ClusterView {
  readonly #options: ClusterNodeOptions
  readonly #deps: ClusterNodeDeps
  readonly #proposals: LocalProposals
  readonly #reads: ReadIndexRounds
  readonly #peers: PeerRpc
  readonly #requests: ConsensusRequests
  readonly #soft: SoftStateChannel
  readonly #observer: ClusterObserver
  readonly #follower: StateFollower
  /** Alarms for the operator; all components of this controller use them. */
  readonly alarms: Alarms
  #stopSweep: (() => void) | null = null
  #onStarted: (port: number) => void = () => undefined
  #onStopped: () => void = () => undefined
  #hasFailed = false
  #isLeaving = false

  constructor(options: ClusterNodeOptions, deps: ClusterNodeDeps) {
    const { link, clock } = deps
    this.#options = options
    this.#deps = deps
    this.#proposals = this.#makeProposals()
    this.#requests = new ConsensusRequests((command) => link.post(command))
    this.#reads = new ReadIndexRounds({
      clock,
      timeoutMs: options.readTimeoutMs,
      ask: (id) => link.post({ type: 'readIndex', id }),
    })
    this.#peers = new PeerRpc(
      (command) => link.post(command),
      (method, err) => deps.log.error({ method, err }, 'a call of a peer failed'),
    )
    this.alarms = new Alarms(clock, deps.log)
    this.#follower = this.#makeFollower()
    this.#soft = new SoftStateChannel(
      // The epoch is the start time. The start count of the store cannot serve as epoch, because
      // the count restarts with a new disk.
      { ...defaultSoftStateOptions, selfId: options.self.id, epoch: options.self.startedAtMs },
      { peers: this.#peers, clock, members: () => this.#observer.memberIds },
      softTopics,
    )
    this.#observer = this.#makeObserver()
    link.onMessage = (event) => this.#onEvent(event)
  }

  get selfId(): NodeId {
    return this.#options.self.id
  }

  get clusterId(): string {
    return this.#options.clusterId
  }

  get peers(): PeerChannel {
    return this.#peers
  }

  /** Values in memory that the controllers share outside of the log. */
  get soft(): SoftState {
    return this.#soft
  }

  /** Metrics of consensus, mesh and disk in this process. */
  get vitals(): ConsensusStats {
    return this.#observer.status.vitals
  }

  get featureLevel(): number {
    return this.#deps.machine.featureLevel
  }

  get generation(): number {
    return this.#options.generation
  }

  /**
   * True from when the state of this controller was found to differ from the state of the majority
   * until a majority has confirmed the rebuilt state. This controller must not answer requests from
   * its state meanwhile.
   */
  get isQuarantined(): boolean {
    return this.#follower.guard.isQuarantined
  }

  /**
   * Starts consensus and the mesh.
   * @returns the mesh port. If the consensus thread fails, `onFatal` is called and this promise
   * never settles.
   */
  async start(): Promise<number> {
    this.#stopSweep = periodicScheduler.every(SWEEP_MS, () => this.#onSweep())
    this.#soft.start()
    this.#deps.link.post({ type: 'start' })
    this.#follower.reportProgress()
    return await new Promise((resolve) => {
      this.#onStarted = resolve
    })
  }

  /**
   * Reports to the other controllers that this one is about to stop: their leadership balancers no
   * longer choose it, and they list it as read-only. Called before a planned stop.
   */
  announceLeave(): void {
    this.#isLeaving = true
    this.#observer.announce()
  }

  /**
   * Before a planned stop: transfers leadership and gives outstanding writes time to complete
   * through the next leader. Does neither if no other controller is connected. Always resolves, in
   * bounded time.
   */
  async handOver(): Promise<void> {
    const hasHeir = this.#observer.status.peers.some(({ isConnected }) => isConnected)
    if (this.#hasFailed || !hasHeir) return
    if (this.#observer.status.role === 'leader') {
      const reason = await this.#requests.transferLeadership(null)
      if (reason !== null) this.#deps.log.warn({}, `leadership transfer failed: ${reason}`)
    }
    const endMs = this.#deps.clock.monotonicMs() + this.#options.drainMsMax
    while (this.#proposals.count > 0 && this.#deps.clock.monotonicMs() < endMs) {
      await new Promise((resolve) => setTimeout(resolve, DRAIN_LOOK_MS))
    }
  }

  /**
   * Stops the consensus thread and fails outstanding writes. Resolves when the thread has released
   * its disk; the state machine stays open.
   */
  async stop(): Promise<void> {
    const stopped = new Promise<void>((resolve) => {
      this.#onStopped = resolve
    })
    // Sends the latest soft state of this controller to its peers.
    this.#soft.tick()
    await this.#observer.save()
    this.#deps.link.post({ type: 'stop' })
    await stopped
    this.#end()
    await this.#follower.guard.stop()
    this.#deps.link.close()
  }

  members(): readonly MemberView[] {
    return this.#observer.members()
  }

  /**
   * Health of this controller and its view of the cluster. Works without contact to another
   * controller.
   */
  health(): NodeHealth {
    return this.#observer.health(this, this.status())
  }

  /** The current configuration at this controller. Clone the record before changing it. */
  configuration(): CurrentConfiguration {
    return this.#observer.configuration()
  }

  /** Removed members whose certificates this controller has stored. */
  formerMembers(): readonly FormerMember[] {
    return this.#observer.formerMembers()
  }

  peerStatuses(): readonly PeerReport[] {
    return this.#observer.status.peers
  }

  /** Sets the identity for new mesh connections; open ones continue with the previous one. */
  setIdentity(identity: MeshIdentity): void {
    this.#deps.link.post({ type: 'identity', identity })
  }

  leaderId(): NodeId | null {
    return this.#observer.status.leader
  }

  quorumClockMs(): number | null {
    return this.#observer.quorumClockMs()
  }

  leaderContactMs(): number {
    return this.#observer.leaderContactMs()
  }

  status(): ClusterNodeStatus {
    return this.#observer.ownStatus(this.#proposals.count)
  }

  async readIndex(): Promise<Index> {
    this.#refuseWithoutLeader()
    this.#refuseInQuarantine()
    return await this.#reads.read()
  }

  async propose(input: ProposalInput): Promise<AppliedProposal> {
    this.#refuseWithoutLeader()
    this.#refuseInQuarantine()
    return await this.#proposals.propose(input)
  }

  /**
   * Transfers leadership to `target`, or to the most up-to-date voter. Resolves when this
   * controller no longer leads; rejects with TRANSFER_LEADERSHIP_ERROR if no voter takes over in
   * time, or if this controller is not the leader.
   */
  async transferLeadership(target: NodeId | null): Promise<void> {
    const reason = await this.#requests.transferLeadership(target)
    if (reason !== null) throw new Problem('TRANSFER_LEADERSHIP_ERROR', { detail: reason })
  }

  /**
   * Requests a change to a target configuration without outgoing voters; works only on the leader.
   * @param basedOn index of the configuration from which the caller derived `target`; the Raft core
   * refuses the change when another configuration is current.
   * @returns null when the change was logged, or the reason for the refusal.
   * @throws {Problem} NODE_QUARANTINED.
   */
  async changeConfiguration(
    target: ConfigurationRecord,
    basedOn: Index | null = null,
  ): Promise<string | null> {
    // A change is refused during a quarantine: the rules about joining and voting read the state,
    // which may be wrong.
    this.#refuseInQuarantine()
    return await this.#requests.changeConfiguration(target, basedOn)
  }

  #refuseWithoutLeader(): void {
    const isLeaderless =
      this.#observer.status.leader === null &&
      this.leaderContactMs() > this.#options.leaderlessMsMax
    if (isLeaderless || this.#hasFailed) throw new Problem('CLUSTER_NO_LEADER')
  }

  /**
   * Refuses writes and reads of the latest state during a quarantine, because they would use a
   * wrong state.
   */
  #refuseInQuarantine(): void {
    if (this.#follower.guard.isQuarantined) throw new Problem('NODE_QUARANTINED')
  }

  #onEvent(event: ConsensusThreadEvent): void {
    switch (event.type) {
      case 'started':
        this.#onStarted(event.port)
        break
      case 'committed':
        this.#follower.push(event.entries)
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
        this.#requests.answer(event.id, event.reason)
        break
      case 'status':
        this.#onStatus(event)
        break
      case 'restore':
        void this.#follower.restore(event.id)
        break
      case 'note':
      case 'called':
      case 'callAnswered':
      case 'link':
        this.#peers.handle(event)
        break
      case 'selfRefused':
        // After a removal, this controller can no longer learn the outcome of its outstanding
        // writes, so it rejects them.
        if (isPermanentlyRefused(event)) this.#proposals.close()
        this.#deps.onSelfRefused?.(event)
        break
      case 'roster':
        this.#deps.onRoster?.(event.roster)
        break
      case 'log':
        this.#deps.log[event.level](event.fields, event.message)
        break
      case 'fatal':
        this.#fail(new Error(event.reason))
        break
      case 'stopped':
        this.#onStopped()
        break
      default:
        this.#follower.onSnapshotEvent(event)
    }
  }

  #onSweep(): void {
    if (!this.#hasFailed) this.#follower.sweep()
    this.#observer.watchLag()
    this.#proposals.sweep()
    this.#reads.sweep()
  }

  #onStatus(status: ConsensusThreadStatus): void {
    const before = this.#observer.status
    this.#observer.onStatus(status)
    this.#follower.onStatus(status)
    // @guard 42-same-leader-in-a-later-term-is-no-news
    if (status.leader === before.leader && status.term === before.term) return
    this.#deps.log.info(
      { term: status.term, leader: status.leader, role: status.role },
      status.leader === null
        ? `no leader (term ${status.term})`
        : `new leader ${status.leader} (term ${status.term})`,
    )
    if (status.leader === null) return
    this.#proposals.proposeAgain()
    this.#proposals.sendParked()
    this.#reads.retry()
  }

  #makeProposals(): LocalProposals {
    const { link, machine, clock, audit } = this.#deps
    return new LocalProposals(this.#options, {
      selfId: this.selfId,
      clock,
      send: (proposals) => link.post({ type: 'propose', proposals }, [proposals.buffer]),
      hasLeader: () => this.#observer.status.leader !== null,
      featureLevel: () => machine.featureLevel,
      // During a quarantine, nothing is audited: the outcome of a write in a wrong state may be
      // wrong.
      onAudited: (record, traceId) =>
        this.#follower.guard.isQuarantined ? undefined : audit?.applied(record, traceId),
    })
  }

  #makeFollower(): StateFollower {
    const { machine, link, clock, log, quarantineMark, onStateReplaced } = this.#deps
    return new StateFollower({
      machine,
      link,
      clock,
      log,
      selfId: this.selfId,
      alarms: this.alarms,
      peers: this.#peers,
      retention: this.#options.retention,
      quarantineMark: quarantineMark ?? null,
      bytesPerSecond: this.#options.stateBytesPerSecond,
      observer: () => this.#observer,
      onStateReplaced: async () => await onStateReplaced?.(),
      onApplied: (applied) => this.#proposals.settle(applied),
      // The snapshot may include writes that this controller proposed, but it contains no outcomes.
      // This controller proposes its writes again: those that the snapshot includes then fail with
      // OUTCOME_UNKNOWN, and the others take effect.
      onRestored: () => this.#proposals.proposeAgain(),
      // The outcomes that a wrong state produced may be wrong, so callers do not receive them.
      onQuarantine: () => this.#proposals.giveUp(),
      handOver: () => void this.#requests.transferLeadership(null),
      onFatal: (error) => this.#fail(error),
    })
  }

  #makeObserver(): ClusterObserver {
    const { machine, clock, log, memory = null, loopDelay, link } = this.#deps
    const { self, lowSpaceBytes } = this.#options
    return new ClusterObserver({
      self,
      machine,
      clock,
      log,
      memory,
      lowSpaceBytes,
      soft: this.#soft,
      loopDelay,
      alarms: this.alarms,
      guard: () => this.#follower.guard,
      isFailing: () => this.#hasFailed || this.#isLeaving,
      onPresence: (id, presence) => {
        const { startedAtMs, applied } = presence
        link.post({ type: 'heardApplied', peer: id, startedAtMs, applied })
        this.#follower.guard.onPresence(id, presence)
      },
    })
  }

  #fail(error: Error): void {
    if (this.#hasFailed) return
    this.#end()
    this.#deps.onFatal(error)
  }

  #end(): void {
    this.#hasFailed = true
    this.#stopSweep?.()
    this.#stopSweep = null
    this.#follower.stop()
    this.#proposals.close()
    this.#reads.abandon()
    this.#soft.stop()
    this.#observer.stop()
    this.#peers.close()
    this.#requests.close()
  }
}
