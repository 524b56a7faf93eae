import { create } from '@bufbuild/protobuf'

import {
  type SnapshotAck,
  SnapshotAckSchema,
  type SnapshotChunk,
} from '../../../proto/gen/mesh_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { decodeMembership } from '../../raft/configuration.ts'
import type { NodeId, Position, Term } from '../../raft/types.ts'
import type { HostEvent } from '../link.ts'
import { position as positionOf } from '../message-codec.ts'
import { ChunkCheck } from './state-chunks.ts'

export interface SnapshotReceiverOptions {
  readonly chunkBytesMax: number
  /** Handed to main and not yet written; no sender has more on its way. */
  readonly unwrittenBytesMax: number
  /** An unfinished transfer that nothing comes for, connected or not, is kept this long. */
  readonly silenceMsMax: number
}

export const defaultSnapshotReceiverOptions: SnapshotReceiverOptions = {
  chunkBytesMax: 8 * 1024 * 1024,
  unwrittenBytesMax: 64 * 1024 * 1024,
  silenceMsMax: 60_000,
}

export interface SnapshotReceiverParts {
  readonly clock: Clock
  /** @param transfer buffers given away with the event. */
  readonly post: (event: HostEvent, transfer?: readonly ArrayBuffer[]) => void
  readonly send: (to: NodeId, term: Term, ack: SnapshotAck) => void
  /** Leadership as the core knows it. */
  readonly leadership: () => { readonly term: Term; readonly leader: NodeId | null }
  /** Whole, checked and written beside the live state: the core may take it. */
  readonly onReceived: (snapshot: ReceivedSnapshot) => void
  readonly onFailed: (from: NodeId, because: string) => void
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
  /** Has the chunks received. */
  readonly check: ChunkCheck
  /** Chunks written by main. */
  written: number
  /** Sizes of those between the two. */
  readonly unwritten: number[]
  /** The core has been offered it. */
  isOffered: boolean
  offeredMs: number
  heardMs: number
}

interface Restoring {
  readonly id: number
  readonly resolve: () => void
}

/** Word that the sender of a transfer was told last, in case it did not hear it. */
interface Settled {
  readonly from: NodeId
  readonly term: Term
  readonly snapshotId: Uint8Array
  readonly number: number
}

const SNAPSHOT_ID_BYTES = 16
/** The core takes what it is offered in its next turn. */
const OFFER_MS = 1000

/**
 * Takes in one snapshot at a time; a new one replaces an unfinished one. A transfer outlives the
 * connection that it came over: on the next one its sender repeats what was not acknowledged, and
 * what is here already is passed over. It does not outlive the process. Whatever does not fit is
 * refused, and the unfinished store beside the live one is removed.
 */
export class SnapshotReceiver {
  readonly #options: SnapshotReceiverOptions
  readonly #parts: SnapshotReceiverParts
  #transfer: Transfer | null = null
  #restoring: Restoring | null = null
  #settled: Settled | null = null
  #nextId = 1

  constructor(options: SnapshotReceiverOptions, parts: SnapshotReceiverParts) {
    this.#options = options
    this.#parts = parts
  }

  onChunk(from: NodeId, term: Term, chunk: SnapshotChunk): void {
    const settled = this.#settled
    if (settled?.from === from && isEqual(settled.snapshotId, chunk.snapshotId)) {
      this.#tell(settled)
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
    transfer.heardMs = this.#parts.clock.monotonicMs()
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
    else this.#parts.post({ type: 'receiveFinish', id })
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

  onSourceFailed(id: number, because: string): void {
    const transfer = this.#current(id)
    if (transfer !== null) this.#fail(transfer, because)
  }

  /** The core takes the snapshot at `position`. Resolves when main has made it the live state. */
  async restore(position: Position): Promise<void> {
    const transfer = this.#transfer
    if (transfer === null || !transfer.isOffered || transfer.position.index !== position.index) {
      throw new Error(`received no snapshot at index ${position.index}`)
    }
    await new Promise<void>((resolve) => {
      this.#restoring = { id: transfer.id, resolve }
      this.#parts.post({ type: 'restore', id: transfer.id })
    })
  }

  onRestored(id: number): void {
    const restoring = this.#restoring
    if (restoring?.id !== id) return
    this.#restoring = null
    restoring.resolve()
    this.#settle()
  }

  /** The core has what the offered snapshot holds already and passed it over. */
  dropIfPassedOver(commit: number): void {
    const transfer = this.#transfer
    if (transfer === null || !transfer.isOffered || this.#restoring !== null) return
    if (transfer.position.index > commit) return
    this.#parts.post({ type: 'receiveAbandoned', id: transfer.id })
    this.#settle()
  }

  /**
   * The connection that acknowledgements go out by stands (again): some may have been lost with the
   * one before.
   */
  onLinkReady(to: NodeId): void {
    if (this.#transfer?.from === to) this.#acknowledge(this.#transfer)
    else if (this.#settled?.from === to) this.#tell(this.#settled)
  }

  /** Called now and then. */
  sweep(): void {
    const transfer = this.#transfer
    if (transfer === null || this.#restoring !== null) return
    const nowMs = this.#parts.clock.monotonicMs()
    // Whatever the core was told can be lost where too much waits for it.
    if (transfer.isOffered && nowMs - transfer.offeredMs >= OFFER_MS) this.#offer(transfer)
    if (transfer.check.isWhole) return
    const silentMs = nowMs - transfer.heardMs
    if (silentMs > this.#options.silenceMsMax) this.#fail(transfer, 'the sender timed out')
  }

  #isLeading(from: NodeId, term: Term): boolean {
    return term >= this.#parts.leadership().term && !this.#isUsurper(from, term)
  }

  /**
   * Another leads that term. Those of an earlier term led once, and what they sent is committed.
   */
  #isUsurper(from: NodeId, term: Term): boolean {
    const known = this.#parts.leadership()
    return term === known.term && known.leader !== null && known.leader !== from
  }

  #offer(transfer: Transfer): void {
    if (this.#isUsurper(transfer.from, transfer.term)) {
      this.#fail(transfer, 'the sender is not the leader')
      return
    }
    transfer.isOffered = true
    transfer.offeredMs = this.#parts.clock.monotonicMs()
    this.#parts.onReceived(transfer)
  }

  /**
   * @returns null when no transfer can begin with this chunk; one under way is then not touched.
   */
  #begin(from: NodeId, term: Term, chunk: SnapshotChunk): Transfer | null {
    const position = positionOf(chunk.position)
    const isFirst = chunk.number === 0 && chunk.snapshotId.length === SNAPSHOT_ID_BYTES
    if (!isFirst || position.index === 0 || !isConfiguration(chunk.configuration)) return null
    // The core has it, or is about to: it must be there when it is taken over.
    if (this.#transfer?.isOffered === true) return null
    if (this.#transfer !== null) this.#fail(this.#transfer, 'superseded by another snapshot')
    const id = this.#nextId
    this.#nextId += 1
    this.#transfer = {
      id,
      from,
      term,
      position,
      // A copy: it is a view of the frame, which would be kept with it.
      configuration: Uint8Array.from(chunk.configuration),
      snapshotId: Uint8Array.from(chunk.snapshotId),
      check: new ChunkCheck(this.#options.chunkBytesMax),
      written: 0,
      unwritten: [],
      isOffered: false,
      offeredMs: 0,
      heardMs: this.#parts.clock.monotonicMs(),
    }
    this.#settled = null
    this.#parts.post({ type: 'receiveBegin', id, from })
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
    this.#parts.post({ type: 'receiveChunk', id: transfer.id, data }, [data.buffer])
  }

  #faultOf({ check, unwritten }: Transfer, chunk: SnapshotChunk): string | null {
    const waitingBytes = unwritten.reduce((sum, bytes) => sum + bytes, chunk.data.length)
    if (waitingBytes > this.#options.unwrittenBytesMax) return 'received more than was requested'
    return check.take(chunk)
  }

  #current(id: number): Transfer | null {
    return this.#transfer?.id === id ? this.#transfer : null
  }

  /** It is installed or not needed: either way the sender is done. */
  #settle(): void {
    const transfer = this.#transfer
    this.#transfer = null
    if (transfer === null) return
    const { from, term, snapshotId, check } = transfer
    this.#settled = { from, term, snapshotId, number: check.received }
    this.#tell(this.#settled)
  }

  #tell({ from, term, snapshotId, number }: Settled): void {
    this.#parts.send(from, term, create(SnapshotAckSchema, { snapshotId, number, failed: false }))
  }

  /** The last chunk counts as written only when the snapshot has become the state. */
  #acknowledge({ from, term, snapshotId, written, check }: Transfer): void {
    const { received, isWhole } = check
    const number = isWhole ? Math.min(written, received - 1) : written
    this.#tell({ from, term, snapshotId, number })
  }

  #refuse(to: NodeId, term: Term, snapshotId: Uint8Array): void {
    this.#parts.send(to, term, create(SnapshotAckSchema, { snapshotId, failed: true }))
  }

  #fail(transfer: Transfer, because: string): void {
    if (this.#transfer === transfer) this.#transfer = null
    this.#parts.post({ type: 'receiveAbandoned', id: transfer.id })
    this.#refuse(transfer.from, transfer.term, transfer.snapshotId)
    this.#parts.onFailed(transfer.from, because)
  }
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

/** The core would stop at one that it cannot read, as at a mistake of its own. */
function isConfiguration(bytes: Uint8Array): boolean {
  try {
    decodeMembership(0, bytes)
    return true
  } catch {
    return false
  }
}
