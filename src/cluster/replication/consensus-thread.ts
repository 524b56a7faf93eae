import { fromBinary } from '@bufbuild/protobuf'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import type { ForwardFrame, Hello } from '../../../proto/gen/mesh_pb.ts'
import { EventLoopDelay, type EventLoopDelayGauge } from '../../lib/runtime/event-loop-delay.ts'
import { seededRandom } from '../../lib/random.ts'
import { encodeConfiguration } from '../../raft/configuration.ts'
import { RaftCore } from '../../raft/core.ts'
import type { CoreStatus, ProposalResult } from '../../raft/effects.ts'
import { encodeEntries } from '../../raft/entry-codec.ts'
import { defaultRaftNodeLimits } from '../../raft/node-start.ts'
import { RaftNode, systemScheduler } from '../../raft/node.ts'
import type { Message, NodeId, RestoredLog } from '../../raft/types.ts'
import type { ConsensusOptions, ConsensusDeps } from '../consensus-options.ts'
import { ConsensusStatus } from './consensus-status.ts'
import { createMeshHello } from '../mesh/mesh-hello.ts'
import { MembershipCache } from '../mesh/membership-cache.ts'
import { RollbackDetector } from '../mesh/rollback-detector.ts'
import {
  type ConsensusThreadCommand,
  type ConsensusThreadLink,
  createLinkLogger,
  type ConsensusThreadEvent,
} from '../thread-channel.ts'
import type { Logger } from '../logger.ts'
import type { RaftStreamFrame } from '../message-codec.ts'
import { LeaderForwarder, toProposalForwardRefusalCode } from './leader-forwarder.ts'
import { unpackProposals } from './proposal-codec.ts'
import { SnapshotTransfers } from '../state-transfer/snapshot-transfers.ts'
import { AddressBook } from '../mesh/address-book.ts'
import { Mesh, type ConsensusMesh } from '../mesh/mesh.ts'
import { PeerRpcTransport } from '../peer/peer-rpc-transport.ts'
import { ConfigurationSchema } from '../../../proto/gen/membership_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { defaultCoreOptions } from '../../raft/options.ts'

const STATUS_MS = 250

/**
 * Consensus of one controller, and everything else that must not wait for the API: Raft node, disk,
 * mesh, forwarding, snapshots. It exchanges only plain messages with the main thread, so it can run
 * in a separate thread.
 */
export class ConsensusThread {
  readonly #options: ConsensusOptions
  readonly #deps: ConsensusDeps
  readonly #log: Logger
  readonly #raft: RaftCore
  readonly #node: RaftNode
  readonly #book: AddressBook
  readonly #witness: RollbackDetector
  readonly #roster: MembershipCache
  readonly #mesh: ConsensusMesh
  readonly #forwarding: LeaderForwarder
  readonly #peerFrames: PeerRpcTransport
  readonly #snapshots: SnapshotTransfers
  readonly #replies: ConsensusReplies
  readonly #status: ConsensusStatus
  #stopStatusTimer: (() => void) | null = null
  #core: CoreStatus
  #configuration: Uint8Array
  readonly #loopDelay: EventLoopDelayGauge
  #isStatusPlanned = false
  #isOver = false

  constructor(options: ConsensusOptions, parts: ConsensusDeps) {
    this.#options = options
    this.#deps = parts
    this.#loopDelay = parts.loopDelay ?? new EventLoopDelay()
    this.#log = createLinkLogger(parts.link)
    const core = restoreCore(options, parts)
    const { tickMs = defaultRaftNodeLimits.tickMs } = options
    const post: ConsensusThreadLink['post'] = (event, transfer) => parts.link.post(event, transfer)
    this.#raft = core
    this.#core = core.status
    // The Raft core's configuration comes from the log, which may be ahead of the state.
    this.#configuration = encodeConfiguration(core.status.configurationRecord)
    this.#book = openAddressBook(options, parts.clock)
    this.#witness = new RollbackDetector(options.generation, options.roster?.marks)
    this.#roster = this.#makeRoster()
    this.#mesh = this.#makeMesh()
    this.#node = new RaftNode({
      core,
      disk: parts.disk,
      transport: this.#mesh,
      clock: parts.clock,
      scheduler: systemScheduler,
      limits: { ...defaultRaftNodeLimits, tickMs },
      callbacks: {
        onCommitted: (entries) => {
          const packed = encodeEntries(entries)
          parts.link.post({ type: 'committed', entries: packed }, [packed.buffer])
        },
        onProposals: (results) => this.#onProposals(results),
        onStatus: (status) => this.#onCoreStatus(status),
        onSendSnapshot: (to) => this.#snapshots.send(to),
        onRestore: async (position) => await this.#snapshots.restore(position),
        onFatal: (error) => this.#fail(error),
      },
    })
    this.#replies = new ConsensusReplies(this.#node, () => this.#core, post)
    this.#forwarding = this.#makeForwarding()
    this.#peerFrames = new PeerRpcTransport({
      forward: (to, frame) => this.#mesh.forward(to, frame),
      answer: (to, frame) => this.#mesh.answer(to, frame),
      callerOf: (id) => this.#mesh.callerOf(id),
      post,
    })
    this.#snapshots = this.#makeSnapshots()
    this.#status = new ConsensusStatus({
      tickMs,
      mesh: this.#mesh,
      loopDelay: this.#loopDelay,
      diskVitals: parts.diskVitals,
    })
    parts.link.onMessage = (command) => this.#onCommand(command)
  }

  /** The Raft core, for tests; callers must not step it. */
  get core(): RaftCore {
    return this.#raft
  }

  /**
   * Starts the mesh and the Raft core. If the mesh cannot listen, reports that to the main thread
   * as a fatal error.
   */
  async #start(): Promise<void> {
    let port: number
    try {
      port = await this.#mesh.start()
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)))
      return
    }
    // If the thread was stopped meanwhile, nothing more must start.
    if (this.#isOver) return
    this.#node.start()
    this.#stopStatusTimer = periodicScheduler.every(STATUS_MS, () => this.#onStatusTimer())
    this.#deps.link.post({ type: 'started', port })
    this.#planStatus()
  }

  #makeRoster(): MembershipCache {
    const { selfId, storeId, generation, roster } = this.#options
    return new MembershipCache(this.#core, roster ?? null, {
      selfId,
      storeId,
      generation,
      book: this.#book,
      witness: this.#witness,
      monotonicMs: () => this.#deps.clock.monotonicMs(),
      onView: ({ members, committedIndex }) => this.#mesh.setMembers(members, committedIndex),
      broadcast: (frame) => {
        for (const { id } of this.#mesh.peers()) this.#mesh.forward(id, frame)
      },
      post: (event) => this.#deps.link.post(event),
    })
  }

  #makeMesh(): ConsensusMesh {
    const parts = this.#deps
    const { selfId, clusterId, generation, storeId, trustDomain, bind, identity } = this.#options
    const { seeds = [], resolvers = [], lastAddressesFile = null } = this.#options
    const { members, committedIndex: configurationIndex } = this.#roster.view
    const random = seededRandom(seedOf(storeId, parts.restored.boot, 0))
    const make: NonNullable<ConsensusDeps['mesh']> =
      parts.mesh ?? ((...given) => new Mesh(...given))
    return make(
      {
        selfId,
        clusterId,
        generation,
        trustDomain,
        bind,
        identity,
        seeds,
        resolvers,
        lastAddressesFile,
        members,
        configurationIndex,
        book: this.#book,
        witness: this.#witness,
        hello: () => this.#hello(),
        canDial: () => this.#raft.fullStatus.isOnDiskWhole,
      },
      { clock: parts.clock, random, log: this.#log },
      {
        onRaft: (from, content, storeId) => this.#onRaft(from, content, storeId),
        onForward: (from, frame, isAnswer) => this.#onForward(from, frame, isAnswer),
        onCall: (caller, request, answer) => this.#peerFrames.onStranger(caller, request, answer),
        onLink: (to, isReady) => this.#onLink(to, isReady),
        onRefusedByPeer: (by, refusal) => this.#roster.onRefused(by, refusal),
        onAddresses: () => this.#roster.onClaims(),
        onPeers: () => this.#planStatus(),
      },
    )
  }

  #hello(): Hello {
    const { onDisk, owed, applied } = this.#raft.fullStatus
    return createMeshHello(this.#options, {
      boot: this.#deps.restored.boot,
      onDisk,
      owed,
      applied,
      configurationIndex: this.#roster.view.committedIndex,
      claim: this.#book.own,
    })
  }

  #makeForwarding(): LeaderForwarder {
    return new LeaderForwarder({
      selfId: this.#options.selfId,
      target: {
        propose: (proposals) => this.#node.propose(proposals),
        read: (id) => {
          void this.#node.readIndex().then((result) => {
            this.#forwarding.onRead(id, result.ok ? result.index : null)
          })
        },
      },
      leader: () => this.#core.leader,
      forward: (to, frame) => this.#mesh.forward(to, frame),
      answer: (to, frame) => this.#mesh.answer(to, frame),
      post: (event) => this.#deps.link.post(event),
    })
  }

  #makeSnapshots(): SnapshotTransfers {
    return new SnapshotTransfers(this.#options.snapshots ?? {}, {
      clock: this.#deps.clock,
      log: this.#log,
      leadership: () => this.#core,
      post: (event, transfer) => this.#deps.link.post(event, transfer),
      sendChunk: (to, term, chunk) => this.#mesh.sendSnapshotChunk(to, term, chunk),
      sendAck: (to, term, ack) => {
        this.#mesh.sendSnapshotAck(to, term, ack)
      },
      onSent: (to, outcome) => {
        if (outcome === 'sent') this.#node.snapshotSent(to)
        else this.#node.snapshotFailed(to)
      },
      onReceived: ({ from, term, position, configuration }) => {
        const to = this.#options.selfId
        this.#node.receive({ type: 'snapshot', from, to, term, position, configuration })
      },
    })
  }

  #onCommand(command: ConsensusThreadCommand): void {
    if (this.#isOver) return
    switch (command.type) {
      case 'start':
        void this.#start()
        break
      case 'propose':
        this.#forwarding.proposeFromMain(unpackProposals(command.proposals))
        break
      case 'readIndex':
        this.#forwarding.readFromMain(command.id)
        break
      case 'progress':
        this.#node.applied(command.applied, command.timeMs, command.setbackMs)
        break
      case 'compact':
        this.#node.compact(command.position)
        break
      case 'transferLeadership':
        void this.#replies.transferLeadership(command.id, command.target)
        break
      case 'changeConfiguration':
        void this.#replies.changeConfiguration(command)
        break
      case 'note':
      case 'call':
      case 'answerCall':
        this.#peerFrames.onCommand(command)
        break
      case 'heardApplied': {
        const { peer, startedAtMs, applied } = command
        this.#witness.noteApplied(peer, BigInt(startedAtMs), applied)
        break
      }
      case 'identity':
        this.#mesh.setIdentity(command.identity)
        this.#book.setIdentity(command.identity)
        this.#roster.onClaims()
        break
      case 'stop':
        void this.#stop()
        break
      default:
        this.#snapshots.onCommand(command)
    }
  }

  #onRaft(from: NodeId, content: RaftStreamFrame, storeId: Uint8Array): void {
    switch (content.kind) {
      case 'message':
        // The message is ignored: only this thread creates a snapshot message, and only from a
        // complete, verified snapshot.
        if (content.message.type === 'snapshot') break
        this.#noteMatch(from, content.message)
        this.#node.receive(content.message, storeId)
        break
      case 'snapshotChunk':
        this.#snapshots.onChunk(from, content.term, content.chunk)
        break
      case 'snapshotAck':
        this.#snapshots.onAck(from, content.ack)
        break
      case 'hello':
      case 'unknown':
        break
    }
  }

  /**
   * Records the acknowledgments that this controller receives as leader. The disk that made them
   * must never report less.
   */
  #noteMatch(from: NodeId, message: Message): void {
    if (message.type !== 'appendResponse' || !message.success) return
    const { role, term } = this.#core
    if (role !== 'leader' || message.term !== term) return
    this.#mesh.noteMatch(from, term, message.matchIndex)
  }

  #onForward(from: NodeId, frame: ForwardFrame['frame'], isAnswer: boolean): void {
    switch (frame.case) {
      case 'roster':
        this.#roster.take(from, frame.value)
        break
      case 'note':
      case 'call':
      case 'answer':
        this.#peerFrames.onFrame(from, frame, isAnswer)
        break
      default:
        this.#forwarding.onFrame(from, frame, isAnswer)
    }
  }

  #onLink(to: NodeId, isReady: boolean): void {
    this.#planStatus()
    this.#deps.link.post({ type: 'link', peer: to, isReady })
    if (isReady) {
      this.#mesh.forward(to, this.#roster.frame())
      this.#snapshots.onLinkReady(to)
      return
    }
    this.#forwarding.onLinkLost(to)
    this.#peerFrames.onLinkLost(to)
    this.#snapshots.onLinkLost(to)
    this.#node.unreachable(to)
  }

  #onProposals(results: readonly ProposalResult[]): void {
    this.#status.countProposals(results)
    for (const result of results) {
      this.#forwarding.onProposed(
        result.id,
        result.ok ? null : toProposalForwardRefusalCode(result.code),
      )
    }
  }

  #onCoreStatus(status: CoreStatus): void {
    const before = this.#core
    this.#core = status
    const hasNewMembers = status.configurationRecord !== before.configurationRecord
    if (hasNewMembers) this.#configuration = encodeConfiguration(status.configurationRecord)
    this.#roster.onStatus(status)
    this.#snapshots.onStatus(status, hasNewMembers)
    this.#status.countChanges(before, status)
    this.#planStatus()
  }

  #onStatusTimer(): void {
    const { peers } = this.#node.status()
    this.#snapshots.sweep((id) => peers.find((peer) => peer.id === id)?.matchIndex ?? 0)
    this.#roster.flush()
    this.#status.measureMemory()
    this.#postStatus()
  }

  /** Sends one status for all changes within a turn of the event loop. */
  #planStatus(): void {
    if (this.#isStatusPlanned) return
    this.#isStatusPlanned = true
    setImmediate(() => {
      this.#isStatusPlanned = false
      this.#postStatus()
    })
  }

  #postStatus(): void {
    if (this.#isOver) return
    const full = this.#node.status()
    this.#snapshots.onCommit(full.commit)
    this.#deps.link.post({ type: 'status', ...this.#status.of(full, this.#configuration) })
  }

  async #stop(): Promise<void> {
    this.#roster.post()
    this.#end()
    try {
      await this.#deps.disk.close()
    } finally {
      this.#deps.link.post({ type: 'stopped' })
    }
  }

  #fail(error: Error): void {
    if (this.#isOver) return
    this.#end()
    const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
    this.#deps.link.post({ type: 'fatal', reason: `${error.message}${cause}` })
  }

  #end(): void {
    this.#isOver = true
    this.#stopStatusTimer?.()
    this.#loopDelay.stop()
    this.#snapshots.stop()
    this.#node.stop()
    this.#mesh.stop()
  }
}

type ChangeConfiguration = Extract<ConsensusThreadCommand, { readonly type: 'changeConfiguration' }>

/**
 * Executes the main thread's requests on the local Raft node, and responds to them; the counterpart
 * of consensus-requests.ts.
 */
class ConsensusReplies {
  readonly #node: RaftNode
  readonly #status: () => CoreStatus
  readonly #post: (event: ConsensusThreadEvent) => void

  constructor(
    node: RaftNode,
    status: () => CoreStatus,
    post: (event: ConsensusThreadEvent) => void,
  ) {
    this.#node = node
    this.#status = status
    this.#post = post
  }

  async transferLeadership(id: number, target: NodeId | null): Promise<void> {
    const { role, leader } = this.#status()
    if (role !== 'leader') {
      this.#answer(id, `this controller is not the leader; ${leader ?? 'no other'} is`)
      return
    }
    const isDone = await this.#node.transferLeadership(target)
    const late =
      target === null
        ? 'no other voter took over in time; wait until one has caught up, or name it'
        : `${target} did not become leader in time`
    this.#answer(id, isDone ? null : late)
  }

  async changeConfiguration({ id, configuration, basedOn }: ChangeConfiguration): Promise<void> {
    const target = fromBinary(ConfigurationSchema, configuration)
    const result = await this.#node.changeConfiguration(target, basedOn ?? undefined)
    this.#answer(id, result.ok ? null : result.code)
  }

  #answer(id: number, reason: string | null): void {
    this.#post({ type: 'answered', id, reason })
  }
}

/** Restores the Raft core from log and state. */
function restoreCore(options: ConsensusOptions, deps: ConsensusDeps): RaftCore {
  const { selfId, storeId, applied, appliedTimeMs, appliedSetbackMs = 0, core } = options
  const { restored, clock } = deps
  return RaftCore.restore({
    id: selfId,
    storeId,
    options: { ...defaultCoreOptions, ...core },
    // The seed makes nodes draw different election timeouts, and makes a node draw different ones
    // after each start.
    random: seededRandom(seedOf(storeId, restored.boot, clock.nowMs())),
    log: restored,
    applied,
    appliedTimeMs,
    appliedSetbackMs,
    configuration: fromBinary(ConfigurationSchema, configurationAtStart(options, restored)),
  })
}

/** Addresses of peers that are known before the first contact. */
function openAddressBook(options: ConsensusOptions, clock: Clock): AddressBook {
  const { selfId, clusterId, advertise, identity, addressHints } = options
  const hints = new Map(addressHints)
  return new AddressBook({ selfId, clusterId, advertise, identity, nowMs: clock.nowMs(), hints })
}

/**
 * The membership configuration of the state, the log or the membership cache, in this order.
 * @throws when none of them has one.
 */
function configurationAtStart(options: ConsensusOptions, restored: RestoredLog): Uint8Array {
  if (options.configuration.length > 0) return options.configuration
  const first = restored.entries.find(({ type }) => type === 'configuration')
  // The data is copied, because it is a view of the whole log, which each status would transfer.
  if (first !== undefined) return Uint8Array.from(first.data)
  if (options.roster !== undefined && options.roster !== null) return options.roster.configuration
  throw new Error(
    'neither state nor log holds a configuration; this controller was never initialized',
  )
}

/** The seed depends on the disk, the start count and the salt. */
function seedOf(storeId: Uint8Array, boot: number, salt: number): number {
  let seed = (boot ^ salt) >>> 0
  for (const byte of storeId) seed = (Math.imul(seed, 31) + byte) >>> 0
  return seed
}
