import { periodicScheduler } from '../lib/periodic-scheduler.ts'
import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import { Problem } from '../lib/problems.ts'
import type { ClusterView, MemberView } from '../ports/cluster-view.ts'
import type { NodeHealth } from '../ports/node-health.ts'
import type { PeerChannel } from './peer-channel.ts'
import type { Applied, ProposalInput, Proposer } from '../ports/proposer.ts'
import { type SoftState, softTopics } from '../ports/soft-topics.ts'
import type { HostStats } from '../ports/stats.ts'
import type { Index, NodeId } from '../raft/types.ts'
import type {
  ClusterNodeOptions,
  ClusterNodeParts,
  ConfigurationInForce,
} from './cluster-node-parts.ts'
import { ClusterObserver } from './cluster-observer.ts'
import { Alarms } from './health/alarms.ts'
import type { ClusterNodeStatus } from './health/cluster-node-status.ts'
import { ConsensusRequests } from './replication/consensus-requests.ts'
import { type HostEvent, type HostStatus, isRemovedOrFenced, type PeerReport } from './link.ts'
import { Proposals } from './replication/proposals.ts'
import { ReadRounds } from './replication/read-rounds.ts'
import { defaultSoftStateOptions, SoftStateChannel } from './soft-state/soft-state.ts'
import { StateFollower } from './state-follower.ts'
import type { MeshIdentity } from './mesh/mesh-service.ts'
import { PeerRpc } from './peer/peer-rpc.ts'

const SWEEP_MS = 250
/** How often a controller that stops looks whether its writes are answered. */
const DRAIN_LOOK_MS = 100

/**
 * Main's door to the cluster. A write becomes a Command with this controller's origin, goes to the
 * leader, again when that one is lost, and is answered by what this controller itself applies.
 * Created stopped; `start` lets the consensus thread speak.
 */
export class ClusterNode implements Proposer, ClusterView {
  readonly #options: ClusterNodeOptions
  readonly #parts: ClusterNodeParts
  readonly #proposals: Proposals
  readonly #reads: ReadRounds
  readonly #peers: PeerRpc
  readonly #requests: ConsensusRequests
  readonly #soft: SoftStateChannel
  readonly #observer: ClusterObserver
  readonly #follower: StateFollower
  /** Alarms for the operator; other parts of this controller raise theirs here. */
  readonly alarms: Alarms
  #stopSweep: (() => void) | null = null
  #onStarted: (port: number) => void = () => undefined
  #onStopped: () => void = () => undefined
  #hasFailed = false
  #isLeaving = false

  constructor(options: ClusterNodeOptions, parts: ClusterNodeParts) {
    const { link, clock } = parts
    this.#options = options
    this.#parts = parts
    this.#proposals = this.#makeProposals()
    this.#requests = new ConsensusRequests((command) => link.post(command))
    this.#reads = new ReadRounds({
      clock,
      timeoutMs: options.readTimeoutMs,
      ask: (id) => link.post({ type: 'readIndex', id }),
    })
    this.#peers = new PeerRpc(
      (command) => link.post(command),
      (method, err) => parts.log.error({ method, err }, 'a call of a peer failed'),
    )
    this.alarms = new Alarms(clock, parts.log)
    this.#follower = this.#makeFollower()
    this.#soft = new SoftStateChannel(
      // Not the count of its store's starts, which begins anew with another disk.
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

  /** State that is live rather than kept, shared with the other controllers. */
  get soft(): SoftState {
    return this.#soft
  }

  /** How consensus, mesh and disk of this process have been. */
  get vitals(): HostStats {
    return this.#observer.status.vitals
  }

  get featureLevel(): number {
    return this.#parts.machine.featureLevel
  }

  get generation(): number {
    return this.#options.generation
  }

  /** The state of this controller is not that of the others: nothing may be answered from it. */
  get isQuarantined(): boolean {
    return this.#follower.guard.isQuarantined
  }

  /** @returns the mesh port. Never settles when the consensus thread fails: see `onFatal`. */
  async start(): Promise<number> {
    this.#stopSweep = periodicScheduler.every(SWEEP_MS, () => this.#onSweep())
    this.#soft.start()
    this.#parts.link.post({ type: 'start' })
    this.#follower.reportProgress()
    return await new Promise((resolve) => {
      this.#onStarted = resolve
    })
  }

  /** Before a planned stop: tells the others not to elect or write through this controller. */
  announceLeave(): void {
    this.#isLeaving = true
    this.#observer.announce()
  }

  /**
   * Before a planned stop: a leader hands over, and outstanding writes get a little time to be
   * answered through the next one. Resolves in bounded time, whether or not it went well.
   */
  async handOver(): Promise<void> {
    const hasHeir = this.#observer.status.peers.some(({ isConnected }) => isConnected)
    if (this.#hasFailed || !hasHeir) return
    if (this.#observer.status.role === 'leader') {
      const because = await this.#requests.transferLeadership(null)
      if (because !== null) this.#parts.log.warn({}, `leadership transfer failed: ${because}`)
    }
    const endMs = this.#parts.clock.monotonicMs() + this.#options.drainMsMax
    while (this.#proposals.count > 0 && this.#parts.clock.monotonicMs() < endMs) {
      await new Promise((resolve) => setTimeout(resolve, DRAIN_LOOK_MS))
    }
  }

  /**
   * Ends the consensus thread and gives up outstanding writes. Resolves when its disk is released;
   * the state machine stays open.
   */
  async stop(): Promise<void> {
    const stopped = new Promise<void>((resolve) => {
      this.#onStopped = resolve
    })
    // Values that were published last still go out.
    this.#soft.tick()
    await this.#observer.save()
    this.#parts.link.post({ type: 'stop' })
    await stopped
    this.#end()
    await this.#follower.guard.stop()
    this.#parts.link.close()
  }

  members(): readonly MemberView[] {
    return this.#observer.members()
  }

  /** How this controller is, and the cluster as it sees it; local, whatever has failed. */
  health(): NodeHealth {
    return this.#observer.health(this, this.status())
  }

  /** The configuration in force here; the record is the caller's to clone before changing it. */
  configuration(): ConfigurationInForce {
    return this.#observer.configuration()
  }

  peerStatuses(): readonly PeerReport[] {
    return this.#observer.status.peers
  }

  /** The mesh proves itself with it from now on; standing connections stay. */
  setIdentity(identity: MeshIdentity): void {
    this.#parts.link.post({ type: 'identity', identity })
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

  async propose(input: ProposalInput): Promise<Applied> {
    this.#refuseWithoutLeader()
    this.#refuseInQuarantine()
    return await this.#proposals.propose(input)
  }

  /**
   * Transfers leadership to `target`, or to the most up-to-date voter. Resolves when the leader has
   * begun, rejects with TRANSFER_LEADERSHIP_ERROR otherwise. Only the leader's own controller can.
   */
  async transferLeadership(target: NodeId | null): Promise<void> {
    const because = await this.#requests.transferLeadership(target)
    if (because !== null) throw new Problem('TRANSFER_LEADERSHIP_ERROR', { detail: because })
  }

  /**
   * Asks for the members wanted in the end, without outgoing voters, of the leader's controller.
   * @param basedOn index of the configuration it was derived from: refused when no longer in force.
   * @returns null when it was logged, or why it was not.
   * @throws {Problem} NODE_QUARANTINED.
   */
  async changeConfiguration(
    target: ConfigurationRecord,
    basedOn: Index | null = null,
  ): Promise<string | null> {
    // The state tells whom to admit and whom to trust with a vote.
    this.#refuseInQuarantine()
    return await this.#requests.changeConfiguration(target, basedOn)
  }

  #refuseWithoutLeader(): void {
    const isLeaderless =
      this.#observer.status.leader === null &&
      this.leaderContactMs() > this.#options.leaderlessMsMax
    if (isLeaderless || this.#hasFailed) throw new Problem('CLUSTER_NO_LEADER')
  }

  /** Refuses to write what would be judged with a wrong state. */
  #refuseInQuarantine(): void {
    if (this.#follower.guard.isQuarantined) throw new Problem('NODE_QUARANTINED')
  }

  #onEvent(event: HostEvent): void {
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
        this.#requests.answer(event.id, event.because)
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
        // No leader listens to it any more, nor does any entry come that would tell.
        if (isRemovedOrFenced(event)) this.#proposals.close()
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
        this.#follower.onSnapshotEvent(event)
    }
  }

  #onSweep(): void {
    if (!this.#hasFailed) this.#follower.sweep()
    this.#observer.watchLag()
    this.#proposals.sweep()
    this.#reads.sweep()
  }

  #onStatus(status: HostStatus): void {
    const before = this.#observer.status
    this.#observer.onStatus(status)
    this.#follower.onStatus(status)
    // @guard 42-same-leader-in-a-later-term-is-no-news
    if (status.leader === before.leader && status.term === before.term) return
    this.#parts.log.info(
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

  #makeProposals(): Proposals {
    const { link, machine, clock, audit } = this.#parts
    return new Proposals(this.#options, {
      selfId: this.selfId,
      clock,
      send: (proposals) => link.post({ type: 'propose', proposals }, [proposals.buffer]),
      hasLeader: () => this.#observer.status.leader !== null,
      featureLevel: () => machine.featureLevel,
      // A wrong state knows nothing of what came of a write.
      onAudited: (record, traceId) =>
        this.#follower.guard.isQuarantined ? undefined : audit?.applied(record, traceId),
    })
  }

  #makeFollower(): StateFollower {
    const { machine, link, clock, log, quarantineMark, onStateReplaced } = this.#parts
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
      observer: () => this.#observer,
      onStateReplaced: async () => await onStateReplaced?.(),
      onApplied: (applied) => this.#proposals.settle(applied),
      // An entry of ours may be inside the snapshot, which has no outcome: another proposal does.
      onRestored: () => this.#proposals.proposeAgain(),
      // Outcomes that a wrong state gave to outstanding writes are not sent to their callers.
      onQuarantine: () => this.#proposals.giveUp(),
      handOver: () => void this.#requests.transferLeadership(null),
      onFatal: (error) => this.#fail(error),
    })
  }

  #makeObserver(): ClusterObserver {
    const { machine, clock, log, memory = null, loopDelay, link } = this.#parts
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
    this.#parts.onFatal(error)
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
