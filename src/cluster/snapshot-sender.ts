import { createHash } from 'node:crypto'
import type { Hash } from 'node:crypto'
import { crc32 } from 'node:zlib'

import { create } from '@bufbuild/protobuf'

import { SnapshotChunkSchema } from '../../proto/gen/mesh_pb.ts'
import type { SnapshotAck, SnapshotChunk } from '../../proto/gen/mesh_pb.ts'
import { assert } from '../lib/assert.ts'
import type { Clock } from '../lib/clock.ts'
import { newOpaqueId } from '../lib/random.ts'
import type { NodeId, Position, Term } from '../raft/types.ts'
import type { HostEvent } from './link.ts'

export interface SnapshotSenderOptions {
  /** Chunks on their way and not yet written by the receiver. */
  readonly windowChunks: number
  /** A receiver that says nothing for this long has failed. */
  readonly stallMsMax: number
  /** Of all transfers together; Infinity: as fast as the receiver writes. */
  readonly bytesPerSecond: number
}

export const defaultSnapshotSenderOptions: SnapshotSenderOptions = {
  windowChunks: 8,
  stallMsMax: 60_000,
  bytesPerSecond: Infinity,
}

export interface SnapshotSenderParts {
  readonly clock: Clock
  readonly post: (event: HostEvent) => void
  /** @returns false when it cannot be sent. */
  readonly send: (to: NodeId, term: Term, chunk: SnapshotChunk) => boolean
  readonly onDone: (to: NodeId, outcome: 'sent' | 'failed', because: string) => void
}

interface Transfer {
  readonly id: number
  readonly to: NodeId
  readonly term: Term
  readonly snapshotId: Uint8Array
  readonly hash: Hash
  position: Position
  configuration: Uint8Array
  /** Chunks asked of main, sent, and written by the receiver. */
  asked: number
  sent: number
  written: number
  isWhole: boolean
  heardMs: number
  paceTimer: NodeJS.Timeout | null
}

/** Sends snapshots to peers that fell behind: one transfer a peer, given up when its connection or our lead is lost. */
export class SnapshotSender {
  readonly #options: SnapshotSenderOptions
  readonly #parts: SnapshotSenderParts
  readonly #byPeer = new Map<NodeId, Transfer>()
  readonly #byId = new Map<number, Transfer>()
  #nextId = 1
  #paidUntilMs = 0

  constructor(options: SnapshotSenderOptions, parts: SnapshotSenderParts) {
    this.#options = options
    this.#parts = parts
  }

  start(to: NodeId, term: Term): void {
    if (this.#byPeer.has(to)) return
    const id = this.#nextId
    this.#nextId += 1
    const transfer: Transfer = {
      id,
      to,
      term,
      snapshotId: newOpaqueId(),
      hash: createHash('sha256'),
      position: { term: 0, index: 0 },
      configuration: new Uint8Array(0),
      asked: 0,
      sent: 0,
      written: 0,
      isWhole: false,
      heardMs: this.#parts.clock.monotonicMs(),
      paceTimer: null,
    }
    this.#byPeer.set(to, transfer)
    this.#byId.set(id, transfer)
    this.#parts.post({ type: 'snapshotWanted', id, to })
  }

  onOpened(id: number, position: Position, configuration: Uint8Array): void {
    const transfer = this.#byId.get(id)
    if (transfer === undefined) {
      this.#parts.post({ type: 'snapshotOver', id })
      return
    }
    transfer.position = position
    transfer.configuration = configuration
    transfer.heardMs = this.#parts.clock.monotonicMs()
    this.#ask(transfer)
  }

  onChunk(id: number, data: Uint8Array, isLast: boolean): void {
    const transfer = this.#byId.get(id)
    if (transfer === undefined) return
    transfer.hash.update(data)
    const chunk = create(SnapshotChunkSchema, {
      snapshotId: transfer.snapshotId,
      number: transfer.sent,
      data,
      crc32: crc32(data),
      last: isLast,
    })
    if (transfer.sent === 0) {
      const { term, index } = transfer.position
      Object.assign(chunk, { configuration: transfer.configuration })
      chunk.position = {
        $typeName: 'flotilla.mesh.v1.Position',
        term: BigInt(term),
        index: BigInt(index),
      }
    }
    if (isLast) chunk.sha256 = Uint8Array.from(transfer.hash.digest())
    transfer.sent += 1
    transfer.isWhole = isLast
    this.#paidUntilMs =
      Math.max(this.#paidUntilMs, this.#parts.clock.monotonicMs()) +
      (data.length / this.#options.bytesPerSecond) * 1000
    if (!this.#parts.send(transfer.to, transfer.term, chunk)) {
      this.#end(transfer, 'failed', 'it is not connected or does not read')
    }
  }

  onSourceFailed(id: number, because: string): void {
    const transfer = this.#byId.get(id)
    if (transfer !== undefined) this.#end(transfer, 'failed', because)
  }

  onAck(from: NodeId, ack: SnapshotAck): void {
    const transfer = this.#byPeer.get(from)
    if (transfer === undefined || Buffer.compare(transfer.snapshotId, ack.snapshotId) !== 0) return
    transfer.heardMs = this.#parts.clock.monotonicMs()
    if (ack.failed || ack.number > transfer.sent) {
      this.#end(transfer, 'failed', 'the receiver refused it')
      return
    }
    transfer.written = Math.max(transfer.written, ack.number)
    if (transfer.isWhole && transfer.written === transfer.sent) {
      this.#end(transfer, 'sent', 'installed')
    } else {
      this.#ask(transfer)
    }
  }

  onLinkLost(to: NodeId): void {
    const transfer = this.#byPeer.get(to)
    if (transfer !== undefined) this.#end(transfer, 'failed', 'the connection was lost')
  }

  /** Another leads, or this one in another term: its transfers are no longer ours to make. */
  abandonOtherThan(term: Term | null): void {
    for (const transfer of [...this.#byPeer.values()]) {
      if (transfer.term !== term) this.#end(transfer, 'failed', 'leadership has moved')
    }
  }

  /** Called now and then. */
  sweep(): void {
    const nowMs = this.#parts.clock.monotonicMs()
    for (const transfer of [...this.#byPeer.values()]) {
      if (nowMs - transfer.heardMs > this.#options.stallMsMax) {
        this.#end(transfer, 'failed', 'the receiver has fallen silent')
      }
    }
  }

  #ask(transfer: Transfer): void {
    if (transfer.isWhole || transfer.paceTimer !== null) return
    const room = this.#options.windowChunks - (transfer.asked - transfer.written)
    assert(room >= 0, 'no more is asked than the window holds')
    if (room === 0) return
    const waitMs = this.#paidUntilMs - this.#parts.clock.monotonicMs()
    if (waitMs > 1) {
      transfer.paceTimer = setTimeout(() => {
        transfer.paceTimer = null
        if (this.#byId.has(transfer.id)) this.#ask(transfer)
      }, waitMs)
      return
    }
    // Under a rate one chunk at a time, so that a window's worth does not leave at once.
    const chunks = Number.isFinite(this.#options.bytesPerSecond) ? 1 : room
    transfer.asked += chunks
    this.#parts.post({ type: 'snapshotCredit', id: transfer.id, chunks })
  }

  #end(transfer: Transfer, outcome: 'sent' | 'failed', because: string): void {
    if (transfer.paceTimer !== null) clearTimeout(transfer.paceTimer)
    this.#byPeer.delete(transfer.to)
    this.#byId.delete(transfer.id)
    this.#parts.post({ type: 'snapshotOver', id: transfer.id })
    this.#parts.onDone(transfer.to, outcome, because)
  }
}
