import { fromBinary } from '@bufbuild/protobuf'

import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import type { ForwardFrame, Hello } from '../../proto/gen/mesh_pb.ts'
import type { Clock } from '../lib/clock.ts'
import { LoopDelay } from '../lib/loop-delay.ts'
import type { LoopDelayGauge } from '../lib/loop-delay.ts'
import { seededRandom } from '../lib/random.ts'
import { threadMemory } from '../lib/thread-memory.ts'
import type { ApiAddress } from '../ports/cluster-view.ts'
import type { RosterRecord } from '../ports/roster.ts'
import { NO_DISK_VITALS } from '../ports/vitals.ts'
import type { DiskVitals } from '../ports/vitals.ts'
import { encodeConfiguration, memberIds } from '../raft/configuration.ts'
import { Core } from '../raft/core.ts'
import type { CoreStatus, ProposalResult } from '../raft/effects.ts'
import { encodeEntries } from '../raft/entry-codec.ts'
import { defaultRaftNodeLimits, RaftNode, systemScheduler } from '../raft/node.ts'
import { defaultCoreOptions } from '../raft/options.ts'
import type { CoreOptions } from '../raft/options.ts'
import type { Disk, Message, NodeId, Position, RestoredLog, Role } from '../raft/types.ts'
import { AddressBook } from './transport/addresses.ts'
import { Forwarding } from './proposals/forwarding.ts'
import { logOverLink } from './link.ts'
import type { HostCommand, HostLink, HostStatus, RefusalCode } from './link.ts'
import type { Log } from './log.ts'
import { makeHello } from './handshake/mesh-hello.ts'
import type { RaftContent } from './message-codec.ts'
import type { MeshIdentity } from './transport/mesh-service.ts'
import { Mesh } from './transport/mesh.ts'
import type { HostMesh, MeshEvents, MeshOptions, MeshParts } from './transport/mesh.ts'
import { PeerFrames } from './transport/peer-frames.ts'
import { unpackProposals } from './proposals/proposal-codec.ts'
import { RosterKeeper } from './handshake/roster.ts'
import { defaultSnapshotReceiverOptions, SnapshotReceiver } from './snapshots/snapshot-receiver.ts'
import { defaultSnapshotSenderOptions, SnapshotSender } from './snapshots/snapshot-sender.ts'
import type { SnapshotSenderOptions } from './snapshots/snapshot-sender.ts'
import { Witness } from './handshake/witness.ts'

/** All that a host must be told; plain values, so that it can cross to a worker. */
export interface HostOptions {
  readonly selfId: NodeId
  readonly clusterId: string
  readonly generation: number
  /** 16 bytes. */
  readonly storeId: Uint8Array
  readonly trustDomain: string
  readonly identity: MeshIdentity
  /** host:port to listen on for peers. */
  readonly bind: string
  /** host:port under which peers reach this member. */
  readonly advertise: string
  /** host:port by id; they go before what the member records say. */
  readonly addressHints: readonly (readonly [NodeId, string])[]
  readonly version: string
  readonly startedAtMs: number
  readonly apiAddresses: readonly ApiAddress[]
  /** Where the state stands, the log time there, and the membership.v1.Configuration in force there, encoded. */
  readonly applied: Position
  readonly appliedTimeMs: number
  /** Empty while nothing is applied: a formed log then begins with it. */
  readonly configuration: Uint8Array
  /** What was kept beside them, or given by those who let this member in; what a log and a state that are empty start from. */
  readonly roster?: RosterRecord | null
  /** host:port each; a name may stand for many addresses, and each is asked who is there while members are missing. */
  readonly seeds?: readonly string[]
  /** address:port of the DNS servers that names of peers are asked of; the system's way when empty. */
  readonly resolvers?: readonly string[]
  /** Of the options that must be equal on every controller. */
  readonly sharedOptionsSha256?: Uint8Array
  readonly tickMs?: number
  readonly core?: Partial<CoreOptions>
  readonly snapshots?: Partial<SnapshotSenderOptions>
}

export interface HostParts {
  readonly link: HostLink
  readonly disk: Disk
  readonly restored: RestoredLog
  readonly clock: Clock
  /** How the disk has been; asked with each status. */
  readonly diskVitals?: () => DiskVitals
  /** Absent: gRPC over mutual TLS. A simulation brings a network of its own. */
  readonly mesh?: (options: MeshOptions, parts: MeshParts, events: MeshEvents) => HostMesh
  readonly loopDelay?: LoopDelayGauge
}

const STATUS_MS = 250

/**
 * Consensus of one controller with all that must never wait for its API: the Raft node, its disk, the mesh, forwarding,
 * snapshots under way. Talks to main over a link of plain messages only, so it runs as well in a thread of its own.
 */
export class RaftHost {
  readonly #options: HostOptions
  readonly #parts: HostParts
  readonly #log: Log
  readonly #raft: Core
  readonly #node: RaftNode
  readonly #book: AddressBook
  readonly #witness: Witness
  readonly #roster: RosterKeeper
  readonly #mesh: HostMesh
  readonly #forwarding: Forwarding
  readonly #peerFrames: PeerFrames
  readonly #sender: SnapshotSender
  readonly #receiver: SnapshotReceiver
  readonly #timers: NodeJS.Timeout[] = []
  #core: CoreStatus
  #configuration: Uint8Array
  readonly #loopDelay: LoopDelayGauge
  #memory = threadMemory()
  readonly #counts = { elections: 0, leaderChanges: 0, proposalsAccepted: 0, proposalsRefused: 0 }
  #isStatusPlanned = false
  #isOver = false

  constructor(options: HostOptions, parts: HostParts) {
    this.#options = options
    this.#parts = parts
    this.#loopDelay = parts.loopDelay ?? new LoopDelay()
    this.#log = logOverLink(parts.link)
    this.#configuration = configurationAtStart(options, parts.restored)
    const core = this.#makeCore()
    this.#raft = core
    this.#core = core.status
    // The log may have gone further than the state it is applied to.
    this.#configuration = encodeConfiguration(core.status.configurationRecord)
    this.#book = this.#makeBook()
    this.#witness = new Witness(options.generation, options.roster?.marks)
    this.#roster = this.#makeRoster()
    this.#mesh = this.#makeMesh()
    this.#node = new RaftNode({
      core,
      disk: parts.disk,
      transport: this.#mesh,
      clock: parts.clock,
      scheduler: systemScheduler,
      limits: {
        ...defaultRaftNodeLimits,
        ...(options.tickMs === undefined ? {} : { tickMs: options.tickMs }),
      },
      callbacks: {
        onCommitted: (entries) => {
          const packed = encodeEntries(entries)
          parts.link.post({ type: 'committed', entries: packed }, [packed.buffer])
        },
        onProposals: (results) => this.#onProposals(results),
        onStatus: (status) => this.#onCoreStatus(status),
        onSendSnapshot: (to) => {
          this.#log.info({ peer: to }, `${to} needs compacted entries; sending a snapshot`)
          this.#sender.start(to, this.#core.term)
        },
        onRestore: async (position) => await this.#receiver.restore(position),
        onFatal: (error) => this.#fail(error),
      },
    })
    this.#forwarding = this.#makeForwarding()
    this.#peerFrames = new PeerFrames({
      forward: (to, frame) => this.#mesh.forward(to, frame),
      answer: (to, frame) => this.#mesh.answer(to, frame),
      callerOf: (id) => this.#mesh.callerOf(id),
      post: (event) => parts.link.post(event),
    })
    this.#sender = this.#makeSender()
    this.#receiver = this.#makeReceiver()
    parts.link.onMessage = (command) => this.#onCommand(command)
  }

  /** What consensus holds, for those who check it; never to be stepped. */
  get core(): Core {
    return this.#raft
  }

  /** Takes part from here on. A failure to listen is told to main as fatal. */
  async #start(): Promise<void> {
    let port: number
    try {
      port = await this.#mesh.start()
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)))
      return
    }
    // Stopped while it began to listen: nothing may start after that.
    if (this.#isOver) return
    this.#node.start()
    this.#timers.push(setInterval(() => this.#onStatusTimer(), STATUS_MS))
    this.#parts.link.post({ type: 'started', port })
    this.#planStatus()
  }

  #makeCore(): Core {
    const { selfId, storeId, applied, appliedTimeMs, core } = this.#options
    const { restored, clock } = this.#parts
    return Core.restore({
      id: selfId,
      storeId,
      options: { ...defaultCoreOptions, ...core },
      // Nodes must not draw the same election timeouts, nor one node the same after each start.
      random: seededRandom(seedOf(storeId, restored.boot, clock.nowMs())),
      log: restored,
      applied,
      appliedTimeMs,
      configuration: fromBinary(ConfigurationSchema, this.#configuration),
    })
  }

  #makeBook(): AddressBook {
    const { selfId, clusterId, advertise, identity, addressHints } = this.#options
    const hints = new Map(addressHints)
    const nowMs = this.#parts.clock.nowMs()
    return new AddressBook({ selfId, clusterId, advertise, identity, nowMs, hints })
  }

  #makeRoster(): RosterKeeper {
    const { selfId, storeId, generation, roster } = this.#options
    return new RosterKeeper(this.#core, roster ?? null, {
      ...{ selfId, storeId, generation },
      book: this.#book,
      witness: this.#witness,
      monotonicMs: () => this.#parts.clock.monotonicMs(),
      onView: ({ members, committedIndex }) => this.#mesh.setMembers(members, committedIndex),
      broadcast: (frame) => {
        for (const { id } of this.#mesh.peers()) this.#mesh.forward(id, frame)
      },
      post: (event) => this.#parts.link.post(event),
    })
  }

  #makeMesh(): HostMesh {
    const { options, parts } = { options: this.#options, parts: this.#parts }
    const { selfId, clusterId, generation, storeId, trustDomain, bind, identity } = options
    const { members, committedIndex: configurationIndex } = this.#roster.view
    const { seeds = [], resolvers = [] } = options
    const random = seededRandom(seedOf(storeId, parts.restored.boot, 0))
    const make: NonNullable<HostParts['mesh']> = parts.mesh ?? ((...given) => new Mesh(...given))
    return make(
      {
        ...{ selfId, clusterId, generation, trustDomain, bind, identity, seeds, resolvers },
        ...{ members, configurationIndex, book: this.#book, witness: this.#witness },
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
    return makeHello(this.#options, {
      boot: this.#parts.restored.boot,
      onDisk,
      owed,
      applied,
      configurationIndex: this.#roster.view.committedIndex,
      claim: this.#book.own,
    })
  }

  #makeForwarding(): Forwarding {
    return new Forwarding({
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
      post: (event) => this.#parts.link.post(event),
    })
  }

  #makeSender(): SnapshotSender {
    return new SnapshotSender(
      { ...defaultSnapshotSenderOptions, ...this.#options.snapshots },
      {
        clock: this.#parts.clock,
        post: (event) => this.#parts.link.post(event),
        send: (to, term, chunk) => this.#mesh.sendSnapshotChunk(to, term, chunk),
        onDone: (to, outcome, because) => {
          if (outcome === 'sent') this.#node.snapshotSent(to)
          else this.#node.snapshotFailed(to)
          this.#log.info({ peer: to }, `snapshot to ${to} ${outcome}: ${because}`)
        },
        onSuspended: (to, chunksWritten) => {
          const text = `snapshot to ${to} paused at chunk ${chunksWritten}: peer disconnected`
          this.#log.info({ peer: to }, text)
        },
      },
    )
  }

  #makeReceiver(): SnapshotReceiver {
    return new SnapshotReceiver(defaultSnapshotReceiverOptions, {
      clock: this.#parts.clock,
      leadership: () => this.#core,
      post: (event, transfer) => this.#parts.link.post(event, transfer),
      send: (to, term, ack) => {
        this.#mesh.sendSnapshotAck(to, term, ack)
      },
      onReceived: ({ from, term, position, configuration }) => {
        const to = this.#options.selfId
        this.#log.info({ peer: from, ...position }, `received snapshot at index ${position.index}`)
        this.#node.receive({ type: 'snapshot', from, to, term, position, configuration })
      },
      onFailed: (from, because) => {
        this.#log.warn({ peer: from }, `snapshot from ${from} aborted: ${because}`)
      },
    })
  }

  #onCommand(command: HostCommand): void {
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
        this.#node.applied(command.applied, command.timeMs)
        break
      case 'compact':
        this.#node.compact(command.position)
        break
      case 'transferLeadership':
        void this.#transferLeadership(command.id, command.target)
        break
      case 'changeConfiguration':
        void this.#changeConfiguration(command)
        break
      case 'snapshotOpened':
        this.#sender.onOpened(command.id, command.position, command.configuration)
        break
      case 'snapshotChunk':
        this.#sender.onChunk(command.id, command.data, command.isLast)
        break
      case 'snapshotFailed':
        this.#sender.onSourceFailed(command.id, command.because)
        break
      case 'receiveWritten':
        this.#receiver.onWritten(command.id)
        break
      case 'receiveFinished':
        this.#receiver.onFinished(command.id, command.position, command.configuration)
        break
      case 'receiveFailed':
        this.#receiver.onSourceFailed(command.id, command.because)
        break
      case 'restored':
        this.#receiver.onRestored(command.id)
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
    }
  }

  async #transferLeadership(id: number, target: NodeId | null): Promise<void> {
    if (this.#core.role !== 'leader') {
      const leader = this.#core.leader ?? 'nobody'
      this.#answer(id, `this controller is not the leader; ${leader} is`)
      return
    }
    const isDone = await this.#node.transferLeadership(target)
    this.#answer(id, isDone ? null : `${target ?? 'no other voter'} did not become leader in time`)
  }

  async #changeConfiguration({
    id,
    configuration,
    basedOn,
  }: Extract<HostCommand, { readonly type: 'changeConfiguration' }>): Promise<void> {
    const target = fromBinary(ConfigurationSchema, configuration)
    const result = await this.#node.changeConfiguration(target, basedOn ?? undefined)
    this.#answer(id, result.ok ? null : result.code)
  }

  #answer(id: number, because: string | null): void {
    this.#parts.link.post({ type: 'answered', id, because })
  }

  #onRaft(from: NodeId, content: RaftContent, storeId: Uint8Array): void {
    switch (content.kind) {
      case 'message':
        // Only a whole, checked snapshot becomes such a message, and it is this host that makes it.
        if (content.message.type === 'snapshot') break
        this.#noteMatch(from, content.message)
        this.#node.receive(content.message, storeId)
        break
      case 'snapshotChunk':
        this.#receiver.onChunk(from, content.term, content.chunk)
        break
      case 'snapshotAck':
        this.#sender.onAck(from, content.ack)
        break
      case 'hello':
      case 'unknown':
        break
    }
  }

  /** An acknowledgement of this term's leader is remembered: the disk that gave it must never say less. */
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
    this.#parts.link.post({ type: 'link', peer: to, isReady })
    if (isReady) {
      this.#mesh.forward(to, this.#roster.frame())
      this.#sender.onLinkReady(to)
      this.#receiver.onLinkReady(to)
      return
    }
    this.#forwarding.onLinkLost(to)
    this.#peerFrames.onLinkLost(to)
    this.#sender.onLinkLost(to)
    this.#node.unreachable(to)
  }

  #onProposals(results: readonly ProposalResult[]): void {
    for (const result of results) {
      if (result.ok) this.#counts.proposalsAccepted += 1
      else this.#counts.proposalsRefused += 1
      this.#forwarding.onProposed(result.id, result.ok ? null : refusalOf(result.code))
    }
  }

  #onCoreStatus(status: CoreStatus): void {
    const before = this.#core
    this.#core = status
    if (status.configurationRecord !== before.configurationRecord) {
      this.#configuration = encodeConfiguration(status.configurationRecord)
      const ids = memberIds(status.configuration)
      this.#sender.abandonUnless((id) => ids.includes(id))
    }
    this.#roster.onStatus(status)
    this.#sender.abandonOtherThan(status.role === 'leader' ? status.term : null)
    if (status.role !== before.role && isSeekingVotes(status.role)) this.#counts.elections += 1
    if (status.leader !== null && status.leader !== before.leader) this.#counts.leaderChanges += 1
    this.#planStatus()
  }

  #onStatusTimer(): void {
    const { peers } = this.#node.status()
    this.#sender.sweep((id) => peers.find((peer) => peer.id === id)?.matchIndex ?? 0)
    this.#receiver.sweep()
    this.#roster.flush()
    this.#memory = threadMemory()
    this.#postStatus()
  }

  /** What changes within one turn is told once. */
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
    this.#receiver.dropIfPassedOver(full.commit)
    const { leaderSilenceTicks, peers } = full
    const tickMs = this.#options.tickMs ?? defaultRaftNodeLimits.tickMs
    const matches = new Map(peers.map(({ id, matchIndex }) => [id, matchIndex]))
    const status: HostStatus = {
      role: full.role,
      term: full.term,
      leader: full.leader,
      leaderSilentMs: leaderSilenceTicks === null ? null : leaderSilenceTicks * tickMs,
      commit: full.commit,
      last: full.last.index,
      owed: full.owed,
      configuration: this.#configuration,
      configurationIndex: full.configurationIndex,
      isConfigurationCommitted: full.isConfigurationCommitted,
      peers: this.#mesh.peers().map(({ id, address, isConnected, silentMs, hello, leafPem }) => ({
        id,
        address,
        isConnected,
        silentMs,
        version: hello?.version ?? '',
        startedAtMs: Number(hello?.startedAtMs ?? 0n),
        apiAddresses: (hello?.apiAddresses ?? []).map(({ api, url, version }) => ({
          api,
          url,
          version,
        })),
        certificatePem: leafPem,
        featureLevel: hello?.featureLevel ?? 0,
        matchIndex: matches.get(id) ?? null,
      })),
      vitals: {
        ...this.#counts,
        disk: this.#parts.diskVitals?.() ?? NO_DISK_VITALS,
        loopDelayP99Ms: this.#loopDelay.p99Ms,
        memory: this.#memory,
        logEntries: full.last.index - full.base.index,
        logBytes: full.logBytes,
        droppedFrames: this.#mesh.droppedFrames,
        queuedBytes: this.#mesh.queuedBytes,
      },
    }
    this.#parts.link.post({ type: 'status', ...status })
  }

  async #stop(): Promise<void> {
    this.#roster.post()
    this.#end()
    try {
      await this.#parts.disk.close()
    } finally {
      this.#parts.link.post({ type: 'stopped' })
    }
  }

  #fail(error: Error): void {
    if (this.#isOver) return
    this.#end()
    const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
    this.#parts.link.post({ type: 'fatal', because: `${error.message}${cause}` })
  }

  #end(): void {
    this.#isOver = true
    for (const timer of this.#timers) clearInterval(timer)
    this.#loopDelay.stop()
    this.#sender.stop()
    this.#node.stop()
    this.#mesh.stop()
  }
}

/** A pre-candidate that becomes a candidate goes on with the same election. */
function isSeekingVotes(role: Role): boolean {
  return role === 'preCandidate'
}

function refusalOf(code: (ProposalResult & { ok: false })['code']): RefusalCode {
  switch (code) {
    case 'OVERLOADED':
    case 'TOO_LARGE':
      return code
    case 'NOT_LEADER':
    case 'CHANGE_IN_PROGRESS':
    case 'NOT_CAUGHT_UP':
    case 'INVALID_CONFIGURATION':
      return 'NOT_LEADER'
  }
}

/** @throws when neither the state nor the log says who the members are. */
function configurationAtStart(options: HostOptions, restored: RestoredLog): Uint8Array {
  if (options.configuration.length > 0) return options.configuration
  const first = restored.entries.find(({ type }) => type === 'configuration')
  // A copy: the entry is a view of the whole log as it was read, which would travel along with every status.
  if (first !== undefined) return Uint8Array.from(first.data)
  if (options.roster !== undefined && options.roster !== null) return options.roster.configuration
  throw new Error(
    'neither state nor log holds a configuration; this controller was never initialized',
  )
}

function seedOf(storeId: Uint8Array, boot: number, salt: number): number {
  let seed = (boot ^ salt) >>> 0
  for (const byte of storeId) seed = (Math.imul(seed, 31) + byte) >>> 0
  return seed
}
