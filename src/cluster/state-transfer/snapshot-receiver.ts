import { create } from '@bufbuild/protobuf'

import {
  type SnapshotAck,
  SnapshotAckSchema,
  type SnapshotChunk,
} from '../../../proto/gen/mesh_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { decodeMembership } from '../../raft/configuration.ts'
import type { NodeId, Position, Term } from '../../raft/types.ts'
import type { ConsensusThreadEvent } from '../thread-channel.ts'
import { decodePosition as positionOf } from '../message-codec.ts'
import { StateChunkVerifier } from './state-chunks.ts'

interface SnapshotReceiverOptions {
  /** Maximum bytes of one chunk of a snapshot; a larger chunk aborts the transfer. */
  readonly chunkBytesMax: number
  /**
   * Maximum bytes that the main thread has received and not yet written; more bytes abort the
   * transfer. A sender of this release never has more in transit.
   */
  readonly unwrittenBytesMax: number
  /**
   * The receiver drops an incomplete transfer after this time without data, whether the sender is
   * connected or not.
   */
  readonly silenceMsMax: number
}

export const defaultSnapshotReceiverOptions: SnapshotReceiverOptions = {
  chunkBytesMax: 8 * 1024 * 1024,
  unwrittenBytesMax: 64 * 1024 * 1024,
  silenceMsMax: 60_000,
}

interface SnapshotReceiverDeps {
  readonly clock: Clock
  /** @param transfer buffers transferred with the event. */
  readonly post: (event: ConsensusThreadEvent, transfer?: readonly ArrayBuffer[]) => void
  readonly send: (to: NodeId, term: Term, ack: SnapshotAck) => void
  /** Term and leader as the Raft core knows them. */
  readonly leadership: () => { readonly term: Term; readonly leader: NodeId | null }
  /**
   * Called when the snapshot is complete, verified and stored in addition to the live state; the
   * Raft core may then install it.
   */
  readonly onReceived: (snapshot: ReceivedSnapshot) => void
  readonly onFailed: (from: NodeId, reason: string) => void
}

export interface ReceivedSnapshot {
  readonly from: NodeId
  readonly term: Term
  readonly position: Position
  readonly configuration: Uint8Array
}

interface Transfer extends ReceivedSnapshot {
  readonly id: number
  readonly snapshotId: Uint8Array
  /** Verifies the chunks and counts those received. */
  readonly check: StateChunkVerifier
  /** Number of chunks that the main thread has written. */
  written: number
  /** Sizes of chunks that are received but not written. */
  readonly unwritten: number[]
  /** Whether the Raft core has been offered the snapshot. */
  isOffered: boolean
  offeredMs: number
  heardMs: number
}

interface Restoring {
  readonly id: number
  readonly resolve: () => void
}

/** Last acknowledgment of a completed transfer. It is sent again in case it was lost. */
interface Settled {
  readonly from: NodeId
  readonly term: Term
  readonly snapshotId: Uint8Array
  readonly number: number
}

const SNAPSHOT_ID_BYTES = 16
/**
 * The receiver repeats an offer that the Raft core has not handled for this time. Normally the core
 * handles an offer in its next turn.
 */
const OFFER_MS = 1000

/**
 * Receives one snapshot at a time; a new one replaces an incomplete one. A transfer survives the
 * loss of its connection: the sender then repeats unacknowledged chunks, and the receiver skips
 * those that it has. A transfer does not survive the process. If a chunk is invalid, the receiver
 * refuses it and removes the incomplete store.
 */
export class SnapshotReceiver {
  readonly #options: SnapshotReceiverOptions
  readonly #deps: SnapshotReceiverDeps
  #transfer: Transfer | null = null
  #restoring: Restoring | null = null
  #settled: Settled | null = null
  #nextId = 1

  constructor(options: SnapshotReceiverOptions, deps: SnapshotReceiverDeps) {
    this.#options = options
    this.#deps = deps
  }

  onChunk(from: NodeId, term: Term, chunk: SnapshotChunk): void {
    const settled = this.#settled
    if (settled?.from === from && isEqual(settled.snapshotId, chunk.snapshotId)) {
      this.#sendAck(settled)
      return
    }
    if (!this.#isLeading(from, term)) {
      this.#refuse(from, term, chunk.snapshotId)
      return
    }
    const known = this.#transfer
    const isKnown = known?.from === from && isEqual(known.snapshotId, chunk.snapshotId)
    const transfer = isKnown ? known : this.#begin(from, term, chunk)
    if (transfer === null) {
      this.#refuse(from, term, chunk.snapshotId)
      return
    }
    transfer.heardMs = this.#deps.clock.monotonicMs()
    if (chunk.number < transfer.check.received) this.#acknowledge(transfer)
    else this.#take(transfer, chunk)
  }

  onWritten(id: number): void {
    const transfer = this.#current(id)
    if (transfer === null) return
    transfer.written += 1
    transfer.unwritten.shift()
    const { isWhole, received } = transfer.check
    if (!isWhole || transfer.written < received) this.#acknowledge(transfer)
    else this.#deps.post({ type: 'receiveFinish', id })
  }

  onFinished(id: number, position: Position, configuration: Uint8Array): void {
    const transfer = this.#current(id)
    if (transfer === null) return
    const isSame =
      position.index === transfer.position.index &&
      position.term === transfer.position.term &&
      isEqual(configuration, transfer.configuration)
    if (!isSame) {
      this.#fail(transfer, 'content does not match its announcement')
      return
    }
    this.#offer(transfer)
  }

  onSourceFailed(id: number, reason: string): void {
    const transfer = this.#current(id)
    if (transfer !== null) this.#fail(transfer, reason)
  }

  /**
   * Called when the Raft core installs the snapshot at `position`. Resolves when the main thread
   * has made it the live state.
   */
  async restore(position: Position): Promise<void> {
    const transfer = this.#transfer
    if (transfer === null || !transfer.isOffered || transfer.position.index !== position.index) {
      throw new Error(`received no snapshot at index ${position.index}`)
    }
    await new Promise<void>((resolve) => {
      this.#restoring = { id: transfer.id, resolve }
      this.#deps.post({ type: 'restore', id: transfer.id })
    })
  }

  onRestored(id: number): void {
    const restoring = this.#restoring
    if (restoring?.id !== id) return
    this.#restoring = null
    restoring.resolve()
    this.#settle()
  }

  /**
   * Drops the snapshot if the Raft core ignored the offer because its log already contains
   * everything in the snapshot.
   */
  dropIfPassedOver(commit: number): void {
    const transfer = this.#transfer
    if (transfer === null || !transfer.isOffered || this.#restoring !== null) return
    if (transfer.position.index > commit) return
    this.#deps.post({ type: 'receiveAbandoned', id: transfer.id })
    this.#settle()
  }

  /**
   * Called when the connection for acknowledgments is ready again. Repeats the last acknowledgment,
   * because it may have been lost with the old connection.
   */
  onLinkReady(to: NodeId): void {
    if (this.#transfer?.from === to) this.#acknowledge(this.#transfer)
    else if (this.#settled?.from === to) this.#sendAck(this.#settled)
  }

  /**
   * Repeats an offer that the Raft core has not handled, and drops a transfer whose sender is
   * silent. Called periodically.
   */
  sweep(): void {
    const transfer = this.#transfer
    if (transfer === null || this.#restoring !== null) return
    const nowMs = this.#deps.clock.monotonicMs()
    // The Raft core drops an offer when its queue is full, so the receiver repeats the offer.
    if (transfer.isOffered && nowMs - transfer.offeredMs >= OFFER_MS) this.#offer(transfer)
    if (transfer.check.isWhole) return
    const silentMs = nowMs - transfer.heardMs
    if (silentMs > this.#options.silenceMsMax) this.#fail(transfer, 'the sender timed out')
  }

  #isLeading(from: NodeId, term: Term): boolean {
    return term >= this.#deps.leadership().term && !this.#isUsurper(from, term)
  }

  /**
   * Whether another member leads this term. A sender of an earlier term was the leader of that
   * term, so its snapshot is committed.
   */
  #isUsurper(from: NodeId, term: Term): boolean {
    const known = this.#deps.leadership()
    return term === known.term && known.leader !== null && known.leader !== from
  }

  #offer(transfer: Transfer): void {
    if (this.#isUsurper(transfer.from, transfer.term)) {
      this.#fail(transfer, 'the sender is not the leader')
      return
    }
    transfer.isOffered = true
    transfer.offeredMs = this.#deps.clock.monotonicMs()
    this.#deps.onReceived(transfer)
  }

  /**
   * Starts a transfer with its first chunk.
   * @returns null when no transfer can start with this chunk; a transfer in progress is then
   * unaffected.
   */
  #begin(from: NodeId, term: Term, chunk: SnapshotChunk): Transfer | null {
    const position = positionOf(chunk.position)
    const isFirst = chunk.number === 0 && chunk.snapshotId.length === SNAPSHOT_ID_BYTES
    if (!isFirst || position.index === 0 || !isConfiguration(chunk.configuration)) return null
    // No other transfer may begin: an offered snapshot must stay available until the Raft core has
    // installed it.
    if (this.#transfer?.isOffered === true) return null
    if (this.#transfer !== null) this.#fail(this.#transfer, 'superseded by another snapshot')
    const id = this.#nextId
    this.#nextId += 1
    this.#transfer = {
      id,
      from,
      term,
      position,
      // The bytes are copied, because the view would keep the whole frame in memory.
      configuration: Uint8Array.from(chunk.configuration),
      snapshotId: Uint8Array.from(chunk.snapshotId),
      check: new StateChunkVerifier(this.#options.chunkBytesMax),
      written: 0,
      unwritten: [],
      isOffered: false,
      offeredMs: 0,
      heardMs: this.#deps.clock.monotonicMs(),
    }
    this.#settled = null
    this.#deps.post({ type: 'receiveBegin', id, from })
    return this.#transfer
  }

  #take(transfer: Transfer, chunk: SnapshotChunk): void {
    const fault = this.#faultOf(transfer, chunk)
    if (fault !== null) {
      this.#fail(transfer, fault)
      return
    }
    transfer.unwritten.push(chunk.data.length)
    const data = Uint8Array.from(chunk.data)
    this.#deps.post({ type: 'receiveChunk', id: transfer.id, data }, [data.buffer])
  }

  #faultOf({ check, unwritten }: Transfer, chunk: SnapshotChunk): string | null {
    const waitingBytes = unwritten.reduce((sum, bytes) => sum + bytes, chunk.data.length)
    if (waitingBytes > this.#options.unwrittenBytesMax) return 'received more than was requested'
    return check.take(chunk)
  }

  #current(id: number): Transfer | null {
    return this.#transfer?.id === id ? this.#transfer : null
  }

  /** Completes the transfer, because the snapshot is installed or not needed. */
  #settle(): void {
    const transfer = this.#transfer
    this.#transfer = null
    if (transfer === null) return
    const { from, term, snapshotId, check } = transfer
    this.#settled = { from, term, snapshotId, number: check.received }
    this.#sendAck(this.#settled)
  }

  #sendAck({ from, term, snapshotId, number }: Settled): void {
    this.#deps.send(from, term, create(SnapshotAckSchema, { snapshotId, number, failed: false }))
  }

  /** The last chunk counts as written only once the snapshot has become the state. */
  #acknowledge({ from, term, snapshotId, written, check }: Transfer): void {
    const { received, isWhole } = check
    const number = isWhole ? Math.min(written, received - 1) : written
    this.#sendAck({ from, term, snapshotId, number })
  }

  #refuse(to: NodeId, term: Term, snapshotId: Uint8Array): void {
    this.#deps.send(to, term, create(SnapshotAckSchema, { snapshotId, failed: true }))
  }

  #fail(transfer: Transfer, reason: string): void {
    if (this.#transfer === transfer) this.#transfer = null
    this.#deps.post({ type: 'receiveAbandoned', id: transfer.id })
    this.#refuse(transfer.from, transfer.term, transfer.snapshotId)
    this.#deps.onFailed(transfer.from, reason)
  }
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

/**
 * Whether the bytes are a valid configuration. This is checked here, because the Raft core treats
 * an unreadable configuration as a fatal error.
 */
function isConfiguration(bytes: Uint8Array): boolean {
  try {
    decodeMembership(0, bytes)
    return true
  } catch {
    return false
  }
}
