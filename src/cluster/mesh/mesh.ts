import type { SecureContext } from 'node:tls'
import { logVerbosity, setLogVerbosity, status as Status } from '@grpc/grpc-js'
import { CachedResolver, type Resolution } from '../../lib/runtime/cached-resolver.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import type { Member } from '../../../proto/gen/membership_pb.ts'
import { create } from '@bufbuild/protobuf'
import {
  type CallRequest,
  type CallResponse,
  CallResponseSchema,
  type ForwardFrame,
  type Hello,
  type SnapshotAck,
  type SnapshotChunk,
} from '../../../proto/gen/mesh_pb.ts'
import type { Index, Message, NodeId, Term, Transport } from '../../raft/types.ts'
import type { PeerCaller } from '../peer-channel.ts'
import { lookUpWithResolvers, resolveHostPort } from './resolve-address.ts'
import { SeedFinder } from './seed-finder.ts'
import {
  verifyCaller,
  verifyConnection,
  detectRollback,
  verifyPeer,
  type PeerHandshakeInput,
  type PeerVerificationFacts,
  type PeerVerdict,
} from './handshake.ts'
import { MeshEventLogger } from './mesh-event-logger.ts'
import {
  encodeForwardFrame,
  encodeSnapshotAck,
  encodeSnapshotChunk,
  MessageEncoder,
} from '../message-codec.ts'
import { MeshServer } from './mesh-server.ts'
import { MESH_FRAME_BYTES_MAX, type MeshIdentity, meshSecureContext } from './mesh-service.ts'
import type { CallerMembership } from './mesh-sessions.ts'
import { PeerLink } from './peer-link.ts'
import { RollbackDetector } from './rollback-detector.ts'
import {
  type MeshEvents,
  type MeshOptions,
  type MeshDeps,
  type MeshPeer,
  peerVerificationFacts,
} from './mesh-deps.ts'

interface PeerRecord {
  readonly link: PeerLink
  lastHeardMs: number | null
  hello: Hello | null
  leafPem: string
  isConnected: boolean
}

const WATCH_MS = 250
/**
 * Additional queue space that messages without entries, such as votes and heartbeats, may use when
 * entries fill the queue.
 */
const URGENT_BYTES = 1024 * 1024

/**
 * Connections between members: each member dials every other one and keeps one stream for Raft and
 * one for forwarding. It implements {@link Transport}, so it may lose messages and never waits.
 */
export class Mesh implements Transport {
  readonly #options: MeshOptions
  readonly #deps: MeshDeps
  readonly #events: MeshEvents
  readonly #server: MeshServer
  readonly #encoder = new MessageEncoder()
  readonly #peers = new Map<NodeId, PeerRecord>()
  readonly #reports: MeshEventLogger
  readonly #raftQueueBytesMax: number
  readonly #forwardQueueBytesMax: number
  readonly #silenceMsMax: number
  readonly #witness: RollbackDetector
  readonly #seeds: SeedFinder
  readonly #names: CachedResolver
  #secureContext: SecureContext
  #roster: PeerVerificationFacts
  #configurationIndex: Index
  #stopWatch: (() => void) | null = null
  #watchedMs = 0
  #isStopped = false
  #droppedFrames = 0

  constructor(options: MeshOptions, deps: MeshDeps, events: MeshEvents) {
    this.#options = options
    this.#deps = deps
    this.#events = events
    this.#reports = new MeshEventLogger(deps.clock, deps.log)
    this.#raftQueueBytesMax = options.raftQueueBytesMax ?? 2 * MESH_FRAME_BYTES_MAX
    this.#forwardQueueBytesMax = options.forwardQueueBytesMax ?? 2 * MESH_FRAME_BYTES_MAX
    this.#silenceMsMax = options.silenceMsMax ?? 3000
    this.#witness = options.witness ?? new RollbackDetector(options.generation)
    this.#secureContext = meshSecureContext(options.identity)
    this.#roster = peerVerificationFacts(options, options.members)
    this.#configurationIndex = options.configurationIndex ?? 0
    options.book.setMembers(this.#roster.members)
    const { resolvers = [], lastAddressesFile = null } = options
    this.#names = new CachedResolver({
      path: lastAddressesFile,
      clock: deps.clock,
      lookUp: (host) => lookUpWithResolvers(host, resolvers),
    })
    this.#seeds = this.#makeSeeds()
    this.#server = new MeshServer(options.identity, {
      clock: deps.clock,
      selfId: options.selfId,
      hello: options.hello,
      standing: (leafDer, remote) => this.#standingOf(leafDer, remote),
      configurationIndex: () => this.#configurationIndex,
      generation: options.generation,
      greet: (leafDer, hello) => this.#greet({ leafDer, hello, expectedId: null }),
      judge: (leafDer, hello) => verifyPeer({ leafDer, hello, expectedId: null }, this.#roster),
      onRefused: (verdict, remote) => this.#reports.refusedCaller(verdict, remote),
      onCaller: (from) => {
        this.#peers.get(from)?.link.redialNow()
        this.#review()
      },
      onHeard: (from) => this.#heard(from),
      onRaft: (from, content, storeId) => {
        if (content.kind === 'message') this.#noteTerm(from, content.message)
        events.onRaft(from, content, storeId)
      },
      onForward: (from, frame) => {
        events.onForward(from, frame, false)
      },
      onCall: (leafDer, request, answer) => this.#onCall(leafDer, request, answer),
      onGone: () => this.#review(),
    })
  }

  /**
   * Starts to listen.
   * @returns the port.
   */
  async start(): Promise<number> {
    // gRPC would write messages to stderr; this class logs them with the peer's name and a rate
    // limit.
    setLogVerbosity(logVerbosity.NONE)
    const port = await this.#server.listen(this.#options.bind)
    if (this.#isStopped) {
      this.#server.close()
      return port
    }
    this.#updateLinks()
    this.#watchedMs = this.#deps.clock.monotonicMs()
    this.#stopWatch = periodicScheduler.every(WATCH_MS, () => this.#onWatch())
    this.#seeds.start()
    return port
  }

  stop(): void {
    this.#isStopped = true
    this.#stopWatch?.()
    this.#stopWatch = null
    this.#seeds.stop()
    for (const { link } of this.#peers.values()) link.stop()
    this.#peers.clear()
    this.#server.close()
  }

  /** Raft messages dropped since the start because a queue was full. */
  get droppedFrames(): number {
    return this.#droppedFrames
  }

  /** Bytes of Raft frames queued for all peers. */
  get queuedBytes(): number {
    let bytes = 0
    for (const { link } of this.#peers.values()) bytes += link.queuedBytes
    return bytes
  }

  /**
   * Sets the members that may use the mesh, and immediately closes the streams of others. Also
   * called when only addresses have changed.
   */
  setMembers(members: readonly Member[], configurationIndex: Index = 0): void {
    this.#roster = peerVerificationFacts(this.#options, members)
    this.#configurationIndex = configurationIndex
    this.#options.book.setMembers(this.#roster.members)
    this.#witness.retain((id) => this.#roster.members.has(id))
    this.#server.judgeAgain()
    if (this.#stopWatch !== null) this.#updateLinks()
    this.#review()
  }

  /** Sets the identity for new connections; open ones keep theirs. */
  setIdentity(identity: MeshIdentity): void {
    this.#secureContext = meshSecureContext(identity)
    this.#server.setIdentity(identity)
  }

  /** Records that a follower has acknowledged the leader's log of a term up to an index. */
  noteMatch(from: NodeId, term: Term, index: Index): void {
    this.#witness.noteMatch(from, term, index)
  }

  /** The peers with their connections, sorted by id, without this member. */
  peers(): MeshPeer[] {
    const nowMs = this.#deps.clock.monotonicMs()
    return [...this.#peers]
      .map(([id, peer]) => ({
        id,
        address: this.#shownAddress(id, peer),
        isConnected: peer.isConnected,
        silentMs: peer.lastHeardMs === null ? null : nowMs - peer.lastHeardMs,
        hello: peer.hello,
        leafPem: peer.leafPem,
      }))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  /**
   * The address that operators, routers and joining controllers see: while the member is connected,
   * the name that it advertises, although the mesh dials a member found through a seed at its IP
   * address.
   */
  #shownAddress(id: NodeId, { isConnected, link }: PeerRecord): string {
    const advertised = isConnected ? this.#options.book.advertisedBy(id) : null
    return advertised ?? link.address
  }

  send(message: Message): void {
    const link = this.#peers.get(message.to)?.link
    if (link === undefined || !link.isReady) return
    const isBulk = message.type === 'appendRequest'
    const queueBytesMax = this.#raftQueueBytesMax + (isBulk ? 0 : URGENT_BYTES)
    if (isBulk && link.queuedBytes >= queueBytesMax) {
      this.#droppedFrames += 1
      return
    }
    if (!link.sendRaft(this.#encoder.encode(message), queueBytesMax)) this.#droppedFrames += 1
  }

  /**
   * Sends a chunk of a snapshot.
   * @returns false when the chunk was not sent, because the link is not ready or its queue is full.
   */
  sendSnapshotChunk(to: NodeId, term: Term, chunk: SnapshotChunk): boolean {
    return this.#sendRaftFrame(to, encodeSnapshotChunk(term, chunk), this.#raftQueueBytesMax)
  }

  /**
   * Sends the acknowledgment of a chunk.
   * @returns as {@link sendSnapshotChunk}.
   */
  sendSnapshotAck(to: NodeId, term: Term, ack: SnapshotAck): boolean {
    const queueBytesMax = this.#raftQueueBytesMax + URGENT_BYTES
    return this.#sendRaftFrame(to, encodeSnapshotAck(term, ack), queueBytesMax)
  }

  /**
   * Sends a frame on the forward stream to a peer.
   * @returns false when the frame was not sent for lack of a connection or queue space.
   */
  forward(to: NodeId, frame: ForwardFrame['frame']): boolean {
    const link = this.#peers.get(to)?.link
    if (link === undefined || !link.isReady) return false
    return link.sendForward(encodeForwardFrame(frame), this.#forwardQueueBytesMax)
  }

  /**
   * Responds on the stream that the peer dialed. If that fails, closes the stream, so that the peer
   * learns that no response will come.
   */
  answer(to: NodeId, frame: ForwardFrame['frame']): void {
    if (!this.#server.answer(to, encodeForwardFrame(frame), this.#forwardQueueBytesMax)) {
      this.#server.drop(to, Status.RESOURCE_EXHAUSTED, 'responses are not read fast enough')
    }
  }

  /**
   * The caller, as the open streams of a member have authenticated it; null if the member has none.
   */
  callerOf(id: NodeId): PeerCaller | null {
    const leafDer = this.#server.leafOf(id)
    if (leafDer === null) return null
    const verdict = verifyCaller(leafDer, this.#roster)
    return verdict.ok ? { ...verdict.caller, isMember: true } : null
  }

  #standingOf(leafDer: Uint8Array, remote: string): CallerMembership {
    const verdict = verifyConnection(leafDer, this.#roster)
    if (verdict.ok) return verdict.standing
    this.#reports.refusedCaller(verdict, remote)
    return null
  }

  #onCall(
    leafDer: Uint8Array | null,
    request: CallRequest,
    answer: (response: CallResponse) => void,
  ): void {
    const verdict = verifyCaller(leafDer, this.#roster)
    if (verdict.ok) {
      this.#events.onCall(verdict.caller, request, answer)
      return
    }
    this.#reports.refusedCaller(verdict, 'a caller')
    const failure = { code: 'UNAUTHORIZED', reason: verdict.detail }
    answer(create(CallResponseSchema, { failure }))
  }

  #sendRaftFrame(to: NodeId, frame: Uint8Array, queueBytesMax: number): boolean {
    return this.#peers.get(to)?.link.sendRaft(frame, queueBytesMax) ?? false
  }

  #updateLinks(): void {
    const { members, selfId } = this.#roster
    for (const [id, { link }] of Array.from(this.#peers)) {
      if (members.has(id)) continue
      link.drain()
      this.#peers.delete(id)
      this.#events.onLink(id, false)
    }
    for (const id of members.keys()) {
      if (id === selfId) continue
      const peer = this.#peers.get(id)
      if (peer === undefined) this.#addPeer(id)
      else {
        peer.link.setAddresses(this.#options.book.addressesOf(id))
        peer.link.judgeAgain()
      }
    }
  }

  #addPeer(id: NodeId): void {
    const { selfId, hello, book } = this.#options
    const link = new PeerLink(id, book.addressesOf(id), {
      selfId,
      hello,
      canDial: this.#options.canDial ?? (() => true),
      resolve: (address) => this.#resolveForGrpc(address),
      secureContext: () => this.#secureContext,
      judge: (leafDer, said) => verifyPeer({ leafDer, hello: said, expectedId: id }, this.#roster),
      greet: (leafDer, said) => this.#greet({ leafDer, hello: said, expectedId: id }),
      onRefusedByPeer: (refusal) => this.#events.onRefusedByPeer(id, refusal),
      random: this.#deps.random,
      onReady: (said, leafPem) => {
        const peer = this.#peers.get(id)
        if (peer === undefined) return
        peer.hello = said
        peer.leafPem = leafPem
        this.#heard(id)
        this.#review()
        this.#events.onLink(id, true)
      },
      onLost: () => {
        this.#review()
        this.#events.onLink(id, false)
      },
      onForward: (frame) => this.#events.onForward(id, frame, true),
      onHeard: () => this.#heard(id),
      onRefused: (verdict, dnsFault) =>
        this.#reports.refusedCallee(verdict, id, link.address, dnsFault),
      onFailed: (reason, dnsFault) => this.#reports.unreachable(id, link.address, reason, dnsFault),
    })
    const none = { lastHeardMs: null, hello: null, leafPem: '', isConnected: false }
    this.#peers.set(id, { link, ...none })
    link.start()
  }

  /** Decides about the first Hello of a caller (`expectedId` null) or of a dialed peer. */
  #greet(claim: PeerHandshakeInput): PeerVerdict {
    const verdict = verifyPeer(claim, this.#roster)
    const { hello, expectedId } = claim
    if (!verdict.ok || hello === null || hello === undefined) return verdict
    const fault = detectRollback(verdict.id, hello, expectedId === null, this.#witness)
    if (fault !== null) return fault
    this.#reports.compareOptions(verdict.id, hello, this.#options.hello())
    if (hello.claim?.nodeId === verdict.id && this.#options.book.take(hello.claim)) {
      this.#peers.get(verdict.id)?.link.setAddresses(this.#options.book.addressesOf(verdict.id))
      this.#events.onAddresses()
    }
    return verdict
  }

  /**
   * The term of every message except a pre-vote is durable before the message is sent
   * (raft/effects.ts), so the message proves that the sender's disk has this term.
   */
  #noteTerm(from: NodeId, message: Message): void {
    const isPreVote =
      (message.type === 'voteRequest' || message.type === 'voteResponse') && message.pre
    if (!isPreVote) this.#witness.noteTerm(from, message.term)
  }

  /**
   * If the system's resolver currently resolves a name, gRPC gets the name itself, because gRPC
   * then tries all addresses of the name concurrently.
   */
  async #resolveForGrpc(address: string): Promise<Resolution> {
    const { resolvers = [] } = this.#options
    const resolution = await this.#resolve(address)
    const isCurrent = resolution.fault === null && resolvers.length === 0
    return isCurrent ? { addresses: [address], fault: null } : resolution
  }

  #resolve(address: string): Promise<Resolution> {
    return resolveHostPort(address, (host) => this.#names.resolve(host))
  }

  #makeSeeds(): SeedFinder {
    const { seeds, trustDomain, book, selfId } = this.#options
    return new SeedFinder(
      { seeds: seeds ?? [], trustDomain },
      {
        resolve: (seed) => this.#resolve(seed),
        secureContext: () => this.#secureContext,
        isSearching: () => [...this.#peers.values()].some(({ link }) => !link.isReady),
        isTaken: (address) => [...this.#peers.values()].some(({ link }) => link.isAt(address)),
        onFound: (id, address) => {
          const link = this.#peers.get(id)?.link
          if (id === selfId || link === undefined || link.isReady) return
          book.noteSeen(id, address)
          link.setAddresses(book.addressesOf(id))
          link.redialNow()
        },
      },
    )
  }

  #heard(from: NodeId): void {
    const peer = this.#peers.get(from)
    if (peer !== undefined) peer.lastHeardMs = this.#deps.clock.monotonicMs()
  }

  /** Recomputes which peers are connected and reports changes. */
  #review(): void {
    const nowMs = this.#deps.clock.monotonicMs()
    let hasChanged = false
    for (const [id, peer] of this.#peers) {
      const isHeard = peer.lastHeardMs !== null && nowMs - peer.lastHeardMs <= this.#silenceMsMax
      const isConnected = isHeard && peer.link.isReady && this.#server.hasCaller(id)
      if (isConnected === peer.isConnected) continue
      peer.isConnected = isConnected
      hasChanged = true
      this.#reports.connected(id, isConnected)
    }
    if (hasChanged) this.#events.onPeers()
  }

  #onWatch(): void {
    const nowMs = this.#deps.clock.monotonicMs()
    const isStalled = nowMs - this.#watchedMs > WATCH_MS + 1000
    this.#watchedMs = nowMs
    // After a stall of this thread, it may not yet have read frames that have arrived, so the
    // silence of a peer proves nothing.
    if (isStalled) return
    for (const [id, peer] of this.#peers) {
      const isSilent = peer.lastHeardMs !== null && nowMs - peer.lastHeardMs > this.#silenceMsMax
      if (isSilent && this.#server.hasCaller(id)) {
        this.#server.drop(id, Status.DEADLINE_EXCEEDED, 'no data received on this stream')
      }
    }
    this.#review()
  }
}

/** The part of the mesh that the consensus thread uses. */
export type ConsensusMesh = Transport &
  Pick<
    Mesh,
    | 'start'
    | 'stop'
    | 'droppedFrames'
    | 'queuedBytes'
    | 'setMembers'
    | 'setIdentity'
    | 'noteMatch'
    | 'peers'
    | 'sendSnapshotChunk'
    | 'sendSnapshotAck'
    | 'forward'
    | 'answer'
    | 'callerOf'
  >
