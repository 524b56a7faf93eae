import { createHash } from 'node:crypto'
import type { Hash } from 'node:crypto'
import { crc32 } from 'node:zlib'

import { create } from '@bufbuild/protobuf'

import { SnapshotAckSchema } from '../../proto/gen/mesh_pb.ts'
import type { SnapshotAck, SnapshotChunk } from '../../proto/gen/mesh_pb.ts'
import type { NodeId, Position, Term } from '../raft/types.ts'
import type { HostEvent } from './link.ts'
import { position as positionOf } from './message-codec.ts'

export interface SnapshotReceiverParts {
  /** @param transfer buffers given away with the event. */
  readonly post: (event: HostEvent, transfer?: readonly ArrayBuffer[]) => void
  readonly send: (to: NodeId, term: Term, ack: SnapshotAck) => void
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
  readonly hash: Hash
  /** Chunks received, and written by main. */
  received: number
  written: number
  isWhole: boolean
  /** The core has been offered it. */
  isOffered: boolean
}

interface Restoring {
  readonly id: number
  readonly resolve: () => void
}

/** Takes in one snapshot at a time; a new one replaces an unfinished one. */
export class SnapshotReceiver {
  readonly #parts: SnapshotReceiverParts
  #transfer: Transfer | null = null
  #restoring: Restoring | null = null
  #nextId = 1

  constructor(parts: SnapshotReceiverParts) {
    this.#parts = parts
  }

  /** @param currentTerm the core's; a sender of an older term leads no more. */
  onChunk(from: NodeId, term: Term, chunk: SnapshotChunk, currentTerm: Term): void {
    if (term < currentTerm || this.#restoring !== null) {
      this.#refuse(from, term, chunk.snapshotId)
      return
    }
    if (chunk.number === 0) this.#begin(from, term, chunk)
    const transfer = this.#transfer
    const isNext =
      transfer !== null &&
      transfer.from === from &&
      Buffer.compare(transfer.snapshotId, chunk.snapshotId) === 0 &&
      transfer.received === chunk.number &&
      !transfer.isWhole
    if (!isNext) {
      this.#refuse(from, term, chunk.snapshotId)
      return
    }
    this.#take(transfer, chunk)
  }

  onWritten(id: number): void {
    const transfer = this.#current(id)
    if (transfer === null) return
    transfer.written += 1
    if (!transfer.isWhole || transfer.written < transfer.received) this.#acknowledge(transfer)
    else this.#parts.post({ type: 'receiveFinish', id })
  }

  onFinished(id: number, position: Position, configuration: Uint8Array): void {
    const transfer = this.#current(id)
    if (transfer === null) return
    const isSame =
      position.index === transfer.position.index &&
      position.term === transfer.position.term &&
      Buffer.compare(configuration, transfer.configuration) === 0
    if (!isSame) {
      this.#fail(transfer, 'what it holds is not what was announced')
      return
    }
    transfer.isOffered = true
    this.#parts.onReceived(transfer)
  }

  onSourceFailed(id: number, because: string): void {
    const transfer = this.#current(id)
    if (transfer !== null) this.#fail(transfer, because)
  }

  /** The core takes the snapshot at `position`. Resolves when main has made it the live state. */
  async restore(position: Position): Promise<void> {
    const transfer = this.#transfer
    if (transfer === null || !transfer.isOffered || transfer.position.index !== position.index) {
      throw new Error(`no snapshot at ${position.index} was received`)
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

  /** The sender's stream ended: nothing more of it will come. One that is whole goes on. */
  onSenderLost(from: NodeId): void {
    const transfer = this.#transfer
    if (transfer?.from === from && !transfer.isWhole) this.#fail(transfer, 'its sender is gone')
  }

  #begin(from: NodeId, term: Term, chunk: SnapshotChunk): void {
    if (this.#transfer !== null) this.#fail(this.#transfer, 'another one has begun')
    const id = this.#nextId
    this.#nextId += 1
    this.#transfer = {
      id,
      from,
      term,
      position: positionOf(chunk.position),
      configuration: chunk.configuration,
      snapshotId: chunk.snapshotId,
      hash: createHash('sha256'),
      received: 0,
      written: 0,
      isWhole: false,
      isOffered: false,
    }
    this.#parts.post({ type: 'receiveBegin', id, from })
  }

  #take(transfer: Transfer, chunk: SnapshotChunk): void {
    if (crc32(chunk.data) !== chunk.crc32) {
      this.#fail(transfer, `chunk ${chunk.number} is damaged`)
      return
    }
    transfer.hash.update(chunk.data)
    if (chunk.last && Buffer.compare(transfer.hash.digest(), chunk.sha256) !== 0) {
      this.#fail(transfer, 'the whole does not match its checksum')
      return
    }
    transfer.received += 1
    transfer.isWhole = chunk.last
    const data = Uint8Array.from(chunk.data)
    this.#parts.post({ type: 'receiveChunk', id: transfer.id, data }, [data.buffer])
  }

  #current(id: number): Transfer | null {
    return this.#transfer?.id === id ? this.#transfer : null
  }

  /** It is installed or not needed: either way the sender is done. */
  #settle(): void {
    const transfer = this.#transfer
    this.#transfer = null
    if (transfer !== null) this.#acknowledge(transfer)
  }

  #acknowledge({ from, term, snapshotId, written }: Transfer): void {
    const ack = create(SnapshotAckSchema, { snapshotId, number: written, failed: false })
    this.#parts.send(from, term, ack)
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
