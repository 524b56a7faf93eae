import type { SnapshotAck, SnapshotChunk } from '../../../proto/gen/mesh_pb.ts'
import { assert } from '../../lib/assert.ts'
import type { Clock } from '../../lib/clock.ts'
import { newOpaqueId } from '../../lib/random.ts'
import type { Index, NodeId, Position, Term } from '../../raft/types.ts'
import type { ConsensusThreadEvent } from '../thread-channel.ts'
import { StateChunkEncoder } from './state-chunks.ts'
import { TransferPacer } from './transfer-pacer.ts'

const MIB = 1024 * 1024

export interface SnapshotSenderOptions {
  /**
   * Maximum chunks of one transfer that the sender has read and the receiver has not written yet.
   * These chunks stay in memory, so that they can be sent again.
   */
  readonly windowChunks: number
  /** A transfer fails if its receiver is silent for this time, whether it is connected or not. */
  readonly silenceMsMax: number
  /** Total rate, shared evenly by all transfers; Infinity: only the receivers limit the rate. */
  readonly bytesPerSecond: number
}

export const defaultSnapshotSenderOptions: SnapshotSenderOptions = {
  windowChunks: 8,
  silenceMsMax: 60_000,
  bytesPerSecond: 64 * MIB,
}

interface SnapshotSenderDeps {
  readonly clock: Clock
  readonly post: (event: ConsensusThreadEvent) => void
  /**
   * Sends a chunk of a snapshot.
   * @returns false when the chunk cannot be sent now.
   */
  readonly send: (to: NodeId, term: Term, chunk: SnapshotChunk) => boolean
  readonly onDone: (to: NodeId, outcome: 'sent' | 'failed', reason: string) => void
  readonly onSuspended: (to: NodeId, chunksWritten: number) => void
}

interface SentChunk {
  readonly chunk: SnapshotChunk
  readonly sentMs: number
}

interface Transfer {
  readonly id: number
  readonly to: NodeId
  readonly term: Term
  readonly snapshotId: Uint8Array
  readonly maker: StateChunkEncoder
  position: Position
  configuration: Uint8Array
  /**
   * `asked` and the next two fields: the number of chunks that this thread requested from the main
   * thread, that the main thread has read, and that the receiver has written.
   */
  asked: number
  read: number
  written: number
  /**
   * Chunks that were read and that the receiver has not confirmed as written, in order; a lost
   * connection may have lost them.
   */
  readonly kept: SentChunk[]
  /**
   * Maximum chunks requested but not written, from 1 to windowChunks. It adapts to the number that
   * the connection can carry without queueing.
   */
  window: number
  /**
   * Value of `asked` when the window was last reduced. Chunks requested before do not reduce it
   * again: the same congestion delayed all of them.
   */
  askedAtCut: number
  /** Shortest time from sending a chunk to its acknowledgment so far. */
  wayMsMin: number
  isOpen: boolean
  isWhole: boolean
  /** True while nothing can be sent because the connection is not ready. */
  isSuspended: boolean
  bytes: number
  readonly begunMs: number
  heardMs: number
}

/** Consecutive failures of transfers to one peer. */
interface Failures {
  readonly count: number
  readonly pauseUntilMs: number
}

/**
 * Pause after the second consecutive failure, doubled after each further one. The first failure
 * causes no pause, because it may be a restart of the receiver.
 */
const PAUSE_MS_MIN = 1000
const PAUSE_MS_MAX = 60_000
const WINDOW_AT_START = 2
/**
 * Maximum time for which a chunk may be queued: heartbeats share the connection, and a longer queue
 * would delay them too much.
 */
const QUEUEING_MS_MAX = 400

/**
 * Sends snapshots to peers that fell behind, one transfer per peer. A lost connection suspends a
 * transfer, which resumes with the first unacknowledged chunk. A transfer fails, for example, when
 * the receiver does not know it, when the receiver is silent for too long, or when this controller
 * loses leadership. The Raft core waits until it learns whether the transfer succeeded.
 */
export class SnapshotSender {
  readonly #options: SnapshotSenderOptions
  readonly #deps: SnapshotSenderDeps
  readonly #pacer: TransferPacer<Transfer>
  readonly #byPeer = new Map<NodeId, Transfer>()
  readonly #byId = new Map<number, Transfer>()
  readonly #failures = new Map<NodeId, Failures>()
  /** Peers whose transfer starts after a pause, with the term of each request. */
  readonly #waiting = new Map<NodeId, Term>()
  #nextId = 1

  constructor(options: SnapshotSenderOptions, deps: SnapshotSenderDeps) {
    this.#options = options
    this.#deps = deps
    this.#pacer = new TransferPacer(options.bytesPerSecond, deps.clock, (transfer) => {
      transfer.asked += 1
      deps.post({ type: 'snapshotCredit', id: transfer.id, chunks: 1 })
      this.#ask(transfer)
    })
  }

  /**
   * Starts a transfer, or continues the existing one to this peer. After several failures the
   * transfer starts only after a pause: otherwise a receiver with a full disk would get the same
   * data again and again.
   */
  start(to: NodeId, term: Term): void {
    if (this.#byPeer.has(to)) return
    const nowMs = this.#deps.clock.monotonicMs()
    if (nowMs < (this.#failures.get(to)?.pauseUntilMs ?? 0)) this.#waiting.set(to, term)
    else this.#begin(to, term, nowMs)
  }

  onOpened(id: number, position: Position, configuration: Uint8Array): void {
    const transfer = this.#byId.get(id)
    if (transfer === undefined) return
    transfer.position = position
    transfer.configuration = configuration
    transfer.isOpen = true
    transfer.heardMs = this.#deps.clock.monotonicMs()
    this.#ask(transfer)
  }

  onChunk(id: number, data: Uint8Array, isLast: boolean): void {
    this.#pacer.settle(data.length)
    const transfer = this.#byId.get(id)
    if (transfer === undefined) return
    const chunk = transfer.maker.make(transfer, { data, isLast })
    transfer.read += 1
    transfer.bytes += data.length
    transfer.isWhole = isLast
    transfer.kept.push({ chunk, sentMs: this.#deps.clock.monotonicMs() })
    if (!transfer.isSuspended && !this.#send(transfer, chunk)) this.#suspend(transfer)
  }

  onSourceFailed(id: number, reason: string): void {
    const transfer = this.#byId.get(id)
    if (transfer !== undefined) this.#end(transfer, 'failed', reason)
  }

  onAck(from: NodeId, ack: SnapshotAck): void {
    const transfer = this.#byPeer.get(from)
    if (transfer === undefined || Buffer.compare(transfer.snapshotId, ack.snapshotId) !== 0) return
    if (ack.failed || ack.number > transfer.read) {
      this.#end(transfer, 'failed', 'refused by the receiver')
      return
    }
    const nowMs = this.#deps.clock.monotonicMs()
    transfer.heardMs = nowMs
    if (ack.number > transfer.written) this.#noteWritten(transfer, ack.number, nowMs)
    if (transfer.isWhole && transfer.written === transfer.read) {
      const mib = (transfer.bytes / MIB).toFixed(1)
      const seconds = ((nowMs - transfer.begunMs) / 1000).toFixed(1)
      this.#end(transfer, 'sent', `${mib} MiB installed in ${seconds} s`)
    } else {
      this.#ask(transfer)
    }
  }

  onLinkLost(to: NodeId): void {
    const transfer = this.#byPeer.get(to)
    if (transfer !== undefined && !transfer.isSuspended) this.#suspend(transfer)
  }

  onLinkReady(to: NodeId): void {
    const transfer = this.#byPeer.get(to)
    if (transfer?.isSuspended === true) this.#resume(transfer)
  }

  /** Called when the leader or the term has changed. Aborts transfers of other terms. */
  abandonOtherThan(term: Term | null): void {
    for (const [to, asked] of this.#waiting) if (asked !== term) this.#waiting.delete(to)
    for (const transfer of Array.from(this.#byPeer.values())) {
      if (transfer.term !== term) this.#end(transfer, 'failed', 'leadership changed')
    }
    if (term === null) this.#failures.clear()
  }

  /** Aborts transfers to nodes that are not members. */
  abandonUnless(isMember: (id: NodeId) => boolean): void {
    for (const to of this.#waiting.keys()) if (!isMember(to)) this.#waiting.delete(to)
    for (const transfer of Array.from(this.#byPeer.values())) {
      if (!isMember(transfer.to))
        this.#end(transfer, 'failed', 'the receiver is no longer a member')
    }
    for (const to of this.#failures.keys()) if (!isMember(to)) this.#failures.delete(to)
  }

  /**
   * Ends transfers whose receiver is silent or has caught up, resumes suspended ones, and starts
   * those whose pause is over. Called periodically.
   * @param matchOf match index of a peer. A peer that has reached the snapshot by the log does not
   * need the snapshot.
   */
  sweep(matchOf: (id: NodeId) => Index): void {
    const nowMs = this.#deps.clock.monotonicMs()
    for (const transfer of Array.from(this.#byPeer.values())) {
      if (nowMs - transfer.heardMs > this.#options.silenceMsMax) {
        this.#end(transfer, 'failed', 'the receiver timed out')
      } else if (transfer.isOpen && matchOf(transfer.to) >= transfer.position.index) {
        this.#end(transfer, 'sent', 'the receiver has caught up')
      } else if (transfer.isSuspended) {
        this.#resume(transfer)
      }
    }
    for (const [to, term] of Array.from(this.#waiting)) this.start(to, term)
  }

  stop(): void {
    this.#pacer.stop()
  }

  #begin(to: NodeId, term: Term, nowMs: number): void {
    this.#waiting.delete(to)
    const id = this.#nextId
    this.#nextId += 1
    const transfer: Transfer = {
      id,
      to,
      term,
      snapshotId: newOpaqueId(),
      maker: new StateChunkEncoder(),
      position: { term: 0, index: 0 },
      configuration: new Uint8Array(0),
      asked: 0,
      read: 0,
      written: 0,
      kept: [],
      window: Math.min(WINDOW_AT_START, this.#options.windowChunks),
      askedAtCut: 0,
      wayMsMin: Infinity,
      isOpen: false,
      isWhole: false,
      isSuspended: false,
      bytes: 0,
      begunMs: nowMs,
      heardMs: nowMs,
    }
    this.#byPeer.set(to, transfer)
    this.#byId.set(id, transfer)
    this.#deps.post({ type: 'snapshotWanted', id, to })
  }

  #noteWritten(transfer: Transfer, written: number, nowMs: number): void {
    const done = transfer.kept.splice(0, written - transfer.written)
    transfer.written = written
    const wayMs = nowMs - (done.at(-1)?.sentMs ?? nowMs)
    transfer.wayMsMin = Math.min(transfer.wayMsMin, wayMs)
    const isQueueing = wayMs > transfer.wayMsMin + QUEUEING_MS_MAX
    if (!isQueueing) {
      transfer.window = Math.min(this.#options.windowChunks, transfer.window + done.length)
    } else if (written > transfer.askedAtCut) {
      transfer.window = Math.max(1, Math.floor(transfer.window / 2))
      transfer.askedAtCut = transfer.asked
    }
  }

  #ask(transfer: Transfer): void {
    if (!transfer.isOpen || transfer.isWhole || transfer.isSuspended) return
    if (transfer.asked - transfer.written >= transfer.window) return
    assert(transfer.asked - transfer.written < this.#options.windowChunks, 'a window is kept')
    this.#pacer.join(transfer)
  }

  #send(transfer: Transfer, chunk: SnapshotChunk): boolean {
    return this.#deps.send(transfer.to, transfer.term, chunk)
  }

  #suspend(transfer: Transfer): void {
    transfer.isSuspended = true
    this.#pacer.leave(transfer)
    this.#deps.onSuspended(transfer.to, transfer.written)
  }

  /**
   * Sends the unacknowledged chunks again. The receiver may already have some of them; it skips
   * these and acknowledges its position.
   */
  #resume(transfer: Transfer): void {
    const sentMs = this.#deps.clock.monotonicMs()
    for (const [at, { chunk }] of transfer.kept.entries()) {
      if (!this.#send(transfer, chunk)) return
      transfer.kept[at] = { chunk, sentMs }
      this.#pacer.pay(chunk.data.length)
    }
    transfer.isSuspended = false
    this.#ask(transfer)
  }

  #noteFailure(to: NodeId): void {
    const count = (this.#failures.get(to)?.count ?? 0) + 1
    const pauseMs = count === 1 ? 0 : Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** (count - 2))
    this.#failures.set(to, { count, pauseUntilMs: this.#deps.clock.monotonicMs() + pauseMs })
  }

  #end(transfer: Transfer, outcome: 'sent' | 'failed', reason: string): void {
    if (outcome === 'sent') this.#failures.delete(transfer.to)
    else this.#noteFailure(transfer.to)
    this.#pacer.leave(transfer)
    this.#byPeer.delete(transfer.to)
    this.#byId.delete(transfer.id)
    this.#deps.post({ type: 'snapshotOver', id: transfer.id, isSent: outcome === 'sent' })
    this.#deps.onDone(transfer.to, outcome, reason)
  }
}
