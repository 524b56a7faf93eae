import type { Member } from '../../proto/gen/membership_pb.ts'
import type { Hello, SnapshotAck, SnapshotChunk } from '../../proto/gen/mesh_pb.ts'
import {
  verifyCaller,
  detectRollback,
  verifyPeer,
  type PeerVerificationFacts,
  type PeerVerdict,
} from '../../src/cluster/mesh/handshake.ts'
import type {
  MeshEvents,
  MeshOptions,
  MeshDeps,
  MeshPeer,
} from '../../src/cluster/mesh/mesh-deps.ts'
import type { ConsensusMesh } from '../../src/cluster/mesh/mesh.ts'
import { MESH_FRAME_BYTES_MAX } from '../../src/cluster/mesh/mesh-service.ts'
import {
  decodeForwardFrame,
  decodeRaftFrame,
  encodeForwardFrame,
  encodeSnapshotAck,
  encodeSnapshotChunk,
  MessageEncoder,
  type RaftStreamFrame,
} from '../../src/cluster/message-codec.ts'
import { RollbackDetector } from '../../src/cluster/mesh/rollback-detector.ts'
import type { PeerCaller } from '../../src/cluster/peer-channel.ts'
import { entryBytes } from '../../src/raft/log.ts'
import type { Index, Message, NodeId, Term } from '../../src/raft/types.ts'
import type { Forwarded, Link } from './link.ts'
import type { Network } from './network.ts'
import type { Tally } from './tally.ts'
import type { Context, VirtualLoop } from './virtual-loop.ts'

/** Functions that a mesh needs from the simulated world. */
export interface MeshWorld {
  readonly loop: VirtualLoop
  readonly network: Network
  readonly tally: Tally
  /** Whether frames are sent as production bytes rather than as objects. */
  readonly isWired: boolean
  random(): number
  /** The mesh that currently listens under that ID. */
  meshOf(id: NodeId): SimulatedMesh | null
  leafOf(id: NodeId): Uint8Array
  onSend(from: SimulatedMesh, message: Message): void
  onDeliver(to: SimulatedMesh, from: NodeId, message: Message): void
  /** The chunk as it arrives, possibly damaged. */
  tamper(chunk: SnapshotChunk): SnapshotChunk
}

interface PeerRecord {
  link: Link | null
  /** Number of the connection attempt, so that a late answer to an older one is ignored. */
  attempt: number
  failures: number
  lastHeardMs: number | null
  hello: Hello | null
  leafPem: string
  isConnected: boolean
}

const KEEPALIVE_MS = 3_000
const DRAIN_MS = 1_000
const HELLO_TIMEOUT_MS = 2_500
const BACKOFF_MIN_MS = 50
const BACKOFF_MAX_MS = 1_000
const SILENCE_MS_MAX = 3_000
const WATCH_MS = 250
const RAFT_QUEUE_BYTES_MAX = 2 * MESH_FRAME_BYTES_MAX
const FRAME_OVERHEAD_BYTES = 64

/**
 * The mesh of one controller on a simulated network, instead of gRPC over TLS. Production rules
 * (handshake.ts, rollback-detector.ts) admit peers by the same certificates and first frames.
 * Streams are dialed, refused, broken, half-open and dialed again.
 */
export class SimulatedMesh implements ConsensusMesh {
  readonly id: NodeId
  readonly context: Context
  readonly droppedFrames = 0
  readonly #world: MeshWorld
  readonly #options: MeshOptions
  readonly #parts: MeshDeps
  readonly #events: MeshEvents
  readonly #witness: RollbackDetector
  readonly #peers = new Map<NodeId, PeerRecord>()
  /** Incoming links, by caller. */
  readonly #inbound = new Map<NodeId, Link>()
  #encoder = new MessageEncoder()
  #roster: PeerVerificationFacts
  #configurationIndex: Index
  #isRunning = false

  constructor(
    options: MeshOptions,
    parts: MeshDeps,
    events: MeshEvents,
    surroundings: { readonly world: MeshWorld; readonly context: Context },
  ) {
    this.id = options.selfId
    this.context = surroundings.context
    this.#world = surroundings.world
    this.#options = options
    this.#parts = parts
    this.#events = events
    this.#witness = options.witness ?? new RollbackDetector(options.generation)
    this.#roster = this.#rosterOf(options.members)
    this.#configurationIndex = options.configurationIndex ?? 0
    options.book.setMembers(this.#roster.members)
  }

  get isRunning(): boolean {
    return this.#isRunning && !this.context.isOver
  }

  get storeId(): Uint8Array {
    return this.#options.hello().storeId
  }

  get queuedBytes(): number {
    let bytes = 0
    for (const { link } of this.#peers.values()) bytes += link?.queuedBytes ?? 0
    return bytes
  }

  start(): Promise<number> {
    this.#isRunning = true
    this.#updateLinks()
    this.#watch()
    return Promise.resolve(1)
  }

  stop(): void {
    this.#isRunning = false
    this.closeAll()
  }

  /** Ends all streams, as the end of the process does. */
  closeAll(): void {
    for (const { link } of this.#peers.values()) if (link !== null) this.#break(link, 0)
    for (const link of this.#inbound.values()) this.#break(link, 0)
  }

  setMembers(members: readonly Member[], configurationIndex: Index = 0): void {
    this.#roster = this.#rosterOf(members)
    this.#configurationIndex = configurationIndex
    this.#options.book.setMembers(this.#roster.members)
    this.#witness.retain((id) => this.#roster.members.has(id))
    for (const link of Array.from(this.#inbound.values())) {
      if (!this.#judge(link.caller.id, link.callerHello, null).ok) this.#break(link, 0)
    }
    if (this.#isRunning) this.#updateLinks()
    this.#review()
  }

  setIdentity(): void {
    throw new Error('certificates are not renewed in a simulation')
  }

  noteMatch(from: NodeId, term: Term, index: Index): void {
    this.#witness.noteMatch(from, term, index)
  }

  peers(): MeshPeer[] {
    const nowMs = this.#parts.clock.monotonicMs()
    return [...this.#peers]
      .map(([id, peer]) => ({
        id,
        address: `${id}:1`,
        isConnected: peer.isConnected,
        silentMs: peer.lastHeardMs === null ? null : nowMs - peer.lastHeardMs,
        hello: peer.hello,
        leafPem: peer.leafPem,
      }))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  callerOf(id: NodeId): PeerCaller | null {
    if (!this.#inbound.has(id)) return null
    const verdict = verifyCaller(this.#world.leafOf(id), this.#roster)
    return verdict.ok ? { ...verdict.caller, isMember: true } : null
  }

  send(message: Message): void {
    this.#world.onSend(this, message)
    const link = this.#peers.get(message.to)?.link
    if (link === undefined || link === null) return
    const bytes = this.#world.isWired ? this.#encoder.encode(message) : null
    const length = bytes?.length ?? lengthOf(message)
    if (message.type === 'appendRequest' && link.queuedBytes + length > RAFT_QUEUE_BYTES_MAX) return
    this.#sendRaft(link, length, bytes ?? { kind: 'message', message })
  }

  sendSnapshotChunk(to: NodeId, term: Term, chunk: SnapshotChunk): boolean {
    const sent = this.#world.tamper(chunk)
    const content = { kind: 'snapshotChunk', term, chunk: sent } as const
    return this.#sendInOrder(to, content, () => encodeSnapshotChunk(term, sent))
  }

  sendSnapshotAck(to: NodeId, term: Term, ack: SnapshotAck): boolean {
    const content = { kind: 'snapshotAck', term, ack } as const
    return this.#sendInOrder(to, content, () => encodeSnapshotAck(term, ack))
  }

  forward(to: NodeId, frame: Forwarded): boolean {
    const link = this.#peers.get(to)?.link
    if (link === undefined || link === null) return false
    link.forwardMs = this.#inOrder(link, link.forwardMs, this.id, to, () => {
      link.callee.#onForward(link, this.#crossed(frame), false)
    })
    return true
  }

  answer(to: NodeId, frame: Forwarded): void {
    const link = this.#inbound.get(to)
    if (link === undefined) return
    link.answerMs = this.#inOrder(link, link.answerMs, this.id, to, () => {
      link.caller.#onForward(link, this.#crossed(frame), true)
    })
  }

  /** Receives bytes from an attacker on the stream that `from` dialed. */
  receiveRaw(from: NodeId, bytes: Uint8Array): void {
    const link = this.#inbound.get(from)
    if (link !== undefined) this.#arrive(link, bytes)
  }

  /**
   * Whether sent data arrives there; a broken link appears intact until its ends notice the break.
   */
  hasLinkTo(id: NodeId): boolean {
    const link = this.#peers.get(id)?.link
    return link !== undefined && link !== null && !link.isBreaking
  }

  /**
   * Handles the first frame of an arbitrary caller.
   * @returns the verdict that the caller would receive.
   */
  greet(leafDer: Uint8Array, hello: Hello, expectedId: NodeId | null): PeerVerdict {
    const verdict = verifyPeer({ leafDer, hello, expectedId }, this.#roster)
    if (!verdict.ok) return verdict
    const fault = detectRollback(verdict.id, hello, expectedId === null, this.#witness)
    if (fault !== null) return fault
    if (hello.claim?.nodeId === verdict.id && this.#options.book.take(hello.claim)) {
      this.#events.onAddresses()
    }
    return verdict
  }

  #judge(id: NodeId, hello: Hello, expectedId: NodeId | null): PeerVerdict {
    return verifyPeer({ leafDer: this.#world.leafOf(id), hello, expectedId }, this.#roster)
  }

  #rosterOf(members: readonly Member[]): PeerVerificationFacts {
    const { selfId, clusterId, generation, trustDomain } = this.#options
    const byId = new Map(members.map((member) => [member.id, member]))
    return { selfId, clusterId, generation, trustDomain, members: byId }
  }

  #updateLinks(): void {
    const { members } = this.#roster
    for (const [id, { link }] of Array.from(this.#peers)) {
      if (members.has(id)) continue
      this.#peers.delete(id)
      if (link !== null) this.#drain(link)
      this.#events.onLink(id, false)
    }
    for (const id of members.keys()) {
      if (id === this.id) continue
      const peer = this.#peers.get(id)
      if (peer === undefined) {
        const none = { link: null, lastHeardMs: null, hello: null, leafPem: '', isConnected: false }
        this.#peers.set(id, { ...none, attempt: 0, failures: 0 })
        this.#dialAfter(id, 0)
      } else if (peer.link !== null && peer.hello !== null) {
        if (!this.#judge(id, peer.hello, id).ok) this.#break(peer.link, 0)
      }
    }
  }

  #drain(link: Link): void {
    link.isDraining = true
    this.#world.loop.after(DRAIN_MS, () => {
      this.#break(link, 0)
    })
  }

  #dialAfter(id: NodeId, delayMs: number): void {
    const peer = this.#peers.get(id)
    if (peer === undefined) return
    peer.attempt += 1
    const { attempt } = peer
    this.#world.loop.afterIn(this.context, delayMs, () => {
      if (this.#isRunning && this.#peers.get(id)?.attempt === attempt) this.#dial(id, attempt)
    })
  }

  #redial(id: NodeId, attempt: number): void {
    const peer = this.#peers.get(id)
    if (!this.#isRunning || peer === undefined || peer.attempt !== attempt || peer.link !== null)
      return
    peer.failures += 1
    const backoffMs = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(peer.failures, 5))
    this.#dialAfter(id, backoffMs * (0.5 + this.#world.random() / 2))
  }

  #dial(id: NodeId, attempt: number): void {
    const { network, loop } = this.#world
    if (this.#options.canDial?.() === false) {
      this.#redial(id, attempt)
      return
    }
    const hello = this.#options.hello()
    const outMs = network.delayMs(this.id, id)
    // The callee failed, or stalled, before its first frame.
    loop.afterIn(this.context, HELLO_TIMEOUT_MS, () => this.#redial(id, attempt))
    loop.after(outMs, () => {
      const callee = this.#world.meshOf(id)
      const isHeard = callee?.isRunning === true && !network.isCut(this.id, id)
      if (callee === null || !isHeard || network.isCut(id, this.id)) {
        loop.afterIn(this.context, network.isHealed ? 50 : 500, () => this.#redial(id, attempt))
        return
      }
      loop.afterIn(callee.context, 0, () => callee.#answerCall(this, hello, attempt))
    })
  }

  /** Answers a call as the callee. */
  #answerCall(caller: SimulatedMesh, hello: Hello, attempt: number): void {
    const { loop, network, tally } = this.#world
    if (!this.#isRunning) return
    const verdict = this.greet(this.#world.leafOf(caller.id), hello, null)
    const backMs = network.delayMs(this.id, caller.id)
    if (!verdict.ok) {
      tally.note(verdict.reason === 'rolled-back' ? 'rolled-back disk refused' : 'stranger refused')
      const refusal = {
        reason: verdict.reason,
        configurationIndex: this.#configurationIndex,
        generation: this.#options.generation,
      }
      loop.afterIn(caller.context, backMs, () => {
        if (caller.#peers.get(this.id)?.attempt !== attempt) return
        caller.#events.onRefusedByPeer(this.id, refusal)
        caller.#redial(this.id, attempt)
      })
      return
    }
    const before = this.#inbound.get(caller.id)
    if (before !== undefined) this.#break(before, 0)
    const link: Link = {
      caller,
      callee: this,
      callerHello: hello,
      isOver: false,
      isDraining: false,
      isBreaking: false,
      queuedBytes: 0,
      forwardMs: 0,
      answerMs: 0,
    }
    this.#inbound.set(caller.id, link)
    this.#heard(caller.id)
    this.#review()
    const own = this.#options.hello()
    loop.afterIn(caller.context, backMs, () => caller.#onAnswered(link, own, attempt))
  }

  #onAnswered(link: Link, hello: Hello, attempt: number): void {
    const { id } = link.callee
    const peer = this.#peers.get(id)
    if (!this.#isRunning || peer?.attempt !== attempt || peer.link !== null) {
      this.#break(link, 0)
      return
    }
    if (link.isOver || link.isBreaking) {
      this.#redial(id, attempt)
      return
    }
    const verdict = this.greet(this.#world.leafOf(id), hello, id)
    if (!verdict.ok) {
      this.#break(link, 0)
      this.#redial(id, attempt)
      return
    }
    peer.link = link
    peer.failures = 0
    peer.hello = hello
    peer.leafPem = verdict.leafPem
    this.#heard(id)
    this.#review()
    this.#events.onLink(id, true)
  }

  /** @param afterMs maximum time until either end notices. */
  #break(link: Link, afterMs: number): void {
    if (link.isOver || link.isBreaking) return
    link.isBreaking = true
    link.isOver = afterMs === 0
    const { loop } = this.#world
    loop.after(afterMs, () => {
      link.isOver = true
      loop.afterIn(link.caller.context, 0, () => link.caller.#onBroken(link, true))
      loop.afterIn(link.callee.context, 0, () => link.callee.#onBroken(link, false))
    })
  }

  #onBroken(link: Link, isCaller: boolean): void {
    if (!isCaller) {
      if (this.#inbound.get(link.caller.id) === link) this.#inbound.delete(link.caller.id)
      this.#review()
      return
    }
    const { id } = link.callee
    const peer = this.#peers.get(id)
    if (peer?.link !== link) return
    peer.link = null
    this.#review()
    this.#events.onLink(id, false)
    this.#redial(id, peer.attempt)
  }

  #sendRaft(link: Link, length: number, content: RaftStreamFrame | Uint8Array): void {
    const { network, loop } = this.#world
    const { callee } = link
    if (network.isReset()) {
      this.#world.tally.note('stream reset in mid-message')
      this.#break(link, 0)
      return
    }
    for (const delayMs of network.copiesOf(this.id, callee.id)) {
      link.queuedBytes += length
      loop.after(delayMs, () => {
        link.queuedBytes -= length
        if (this.#isCarried(link, this.id, callee.id)) {
          loop.afterIn(callee.context, 0, () => callee.#arrive(link, content))
        }
      })
    }
  }

  /** Sends snapshots, which depend on the order of the stream. */
  #sendInOrder(to: NodeId, content: RaftStreamFrame, encode: () => Uint8Array): boolean {
    const link = this.#peers.get(to)?.link
    if (link === undefined || link === null || link.isDraining) return false
    const sent = this.#world.isWired ? encode() : content
    link.forwardMs = this.#inOrder(link, link.forwardMs, this.id, to, () => {
      link.callee.#arrive(link, sent)
    })
    return true
  }

  #inOrder(link: Link, notBeforeMs: number, from: NodeId, to: NodeId, arrive: () => void): number {
    const { network, loop } = this.#world
    if (network.isReset()) {
      this.#world.tally.note('stream reset in mid-message')
      this.#break(link, 0)
      return notBeforeMs
    }
    const atMs = Math.max(notBeforeMs, loop.nowMs + network.delayMs(from, to))
    const target = from === link.caller.id ? link.callee : link.caller
    loop.after(atMs - loop.nowMs, () => {
      if (this.#isCarried(link, from, to)) loop.afterIn(target.context, 0, arrive)
    })
    return atMs
  }

  /** A lost frame is not sent again: the stream has a gap, and ends when that is noticed. */
  #isCarried(link: Link, from: NodeId, to: NodeId): boolean {
    if (link.isOver) return false
    if (!this.#world.network.isCut(from, to)) return !link.isBreaking
    this.#break(link, KEEPALIVE_MS * this.#world.random())
    return false
  }

  #arrive(link: Link, content: RaftStreamFrame | Uint8Array): void {
    if (link.isOver || !this.#isRunning) return
    const from = link.caller.id
    this.#heard(from)
    const decoded = content instanceof Uint8Array ? this.#decode(link, content) : content
    if (decoded === null) return
    if (decoded.kind === 'message') {
      const { message } = decoded
      const isPreVote =
        (message.type === 'voteRequest' || message.type === 'voteResponse') && message.pre
      if (!isPreVote) this.#witness.noteTerm(from, message.term)
      this.#world.onDeliver(this, from, message)
    }
    this.#events.onRaft(from, decoded, link.callerHello.storeId)
  }

  /** @returns null for an unreadable frame: the stream ends, as in production. */
  #decode(link: Link, bytes: Uint8Array): RaftStreamFrame | null {
    try {
      if (bytes.length > MESH_FRAME_BYTES_MAX) throw new RangeError('the frame is too large')
      return decodeRaftFrame(Buffer.from(bytes), link.caller.id, this.id)
    } catch {
      this.#world.tally.note('stranger refused')
      this.#break(link, 0)
      return null
    }
  }

  #crossed(frame: Forwarded): Forwarded {
    return this.#world.isWired ? decodeForwardFrame(Buffer.from(encodeForwardFrame(frame))) : frame
  }

  #onForward(link: Link, frame: Forwarded, isAnswer: boolean): void {
    if (link.isOver || !this.#isRunning) return
    const from = isAnswer ? link.callee.id : link.caller.id
    this.#heard(from)
    this.#events.onForward(from, frame, isAnswer)
  }

  #heard(from: NodeId): void {
    const peer = this.#peers.get(from)
    if (peer !== undefined) peer.lastHeardMs = this.#parts.clock.monotonicMs()
  }

  #watch(): void {
    this.#world.loop.afterIn(this.context, WATCH_MS, () => {
      if (!this.#isRunning) return
      this.#review()
      this.#watch()
    })
  }

  #review(): void {
    const nowMs = this.#parts.clock.monotonicMs()
    let hasChanged = false
    for (const [id, peer] of this.#peers) {
      const isHeard = peer.lastHeardMs !== null && nowMs - peer.lastHeardMs <= SILENCE_MS_MAX
      const isConnected = isHeard && peer.link !== null && this.#inbound.has(id)
      if (isConnected === peer.isConnected) continue
      peer.isConnected = isConnected
      hasChanged = true
    }
    if (hasChanged) this.#events.onPeers()
  }
}

function lengthOf(message: Message): number {
  if (message.type !== 'appendRequest') return FRAME_OVERHEAD_BYTES
  return message.entries.reduce((bytes, entry) => bytes + entryBytes(entry), FRAME_OVERHEAD_BYTES)
}
