import { create } from '@bufbuild/protobuf'

import {
  type SoftBatch,
  SoftBatchSchema,
  type SoftValue,
  SoftValueSchema,
} from '../../../proto/gen/soft_pb.ts'
import type { NodeId } from '../../raft/types.ts'

interface OwnValue {
  readonly topic: string
  readonly key: string
  readonly sequence: number
  /** Encoded value; null: withdrawn. */
  readonly payload: Uint8Array | null
  readonly bytes: number
  readonly isVital: boolean
}

interface Stream {
  number: number
  id: number
  isComplete: boolean
  /**
   * Unsent values of vital topics, which are sent before all others. Both maps are in sequence
   * order.
   */
  readonly urgent: Map<string, OwnValue>
  readonly pending: Map<string, OwnValue>
  beganMs: number
  sentMs: number
}

interface SoftOutboxOptions {
  readonly epoch: number
  readonly beaconMs: number
  readonly batchBytesMax: number
  readonly resyncMsMin: number
}

/** This controller's own values, and the unsent changes of each connected peer. */
export class SoftStateOutbox {
  readonly #options: SoftOutboxOptions
  /** Values by slot in sequence order; a changed value moves to the end. */
  readonly #values = new Map<string, OwnValue>()
  readonly #streams = new Map<NodeId, Stream>()
  #sequence = 0
  #lastStream = 0
  #bytes = 0

  constructor(options: SoftOutboxOptions) {
    this.#options = options
  }

  get bytes(): number {
    return this.#bytes
  }

  set(value: Omit<OwnValue, 'sequence'> & { readonly payload: Uint8Array }): void {
    const slot = slotOf(value.topic, value.key)
    this.#remove(slot)
    this.#sequence += 1
    this.#keep(slot, { ...value, sequence: this.#sequence })
  }

  #keep(slot: string, value: OwnValue): void {
    this.#values.set(slot, value)
    this.#bytes += value.bytes
    this.#enqueue(slot, value)
  }

  withdraw(topic: string, key: string, isVital: boolean): void {
    const slot = slotOf(topic, key)
    this.#remove(slot)
    this.#sequence += 1
    const { batchBytesMax } = this.#options
    // A withdrawal counts as few bytes, so that many of them fit in a batch.
    const bytes = Math.min(key.length + topic.length + 16, batchBytesMax)
    this.#enqueue(slot, { topic, key, sequence: this.#sequence, payload: null, bytes, isVital })
  }

  /**
   * Called when a link to a peer is ready, or the peer reports a gap. Starts a new stream, on which
   * the peer receives all values.
   */
  begin(peer: NodeId, nowMs: number): void {
    this.#lastStream += 1
    const all = [...this.#values]
    this.#streams.set(peer, {
      id: this.#lastStream,
      number: 0,
      isComplete: false,
      urgent: new Map(all.filter(([, { isVital }]) => isVital)),
      pending: new Map(all.filter(([, { isVital }]) => !isVital)),
      beganMs: nowMs,
      sentMs: -Infinity,
    })
  }

  end(peer: NodeId): void {
    this.#streams.delete(peer)
  }

  /**
   * Called when the peer reports a gap in `stream`. Ignored for an older stream, because the newer
   * stream contains all values, and within `resyncMsMin` of the last full transmission.
   */
  resync(peer: NodeId, epoch: number, stream: number, nowMs: number): void {
    const current = this.#streams.get(peer)
    if (current === undefined) return
    const isOfThis = epoch !== this.#options.epoch || stream === current.id || stream === 0
    if (isOfThis && nowMs - current.beganMs >= this.#options.resyncMsMin) this.begin(peer, nowMs)
  }

  /** Whether any peer lacks changes. */
  get isWaiting(): boolean {
    for (const { isComplete, urgent, pending } of this.#streams.values()) {
      if (!isComplete || urgent.size > 0 || pending.size > 0) return true
    }
    return false
  }

  /** Whether all changes were sent to a peer. */
  isUpToDate(peer: NodeId): boolean {
    const stream = this.#streams.get(peer)
    if (stream === undefined) return false
    return stream.isComplete && stream.urgent.size === 0 && stream.pending.size === 0
  }

  /** The next batch of changes for a peer, even before it is due; null if there are none. */
  next(peer: NodeId, nowMs: number): SoftBatch | null {
    const stream = this.#streams.get(peer)
    if (stream === undefined || this.isUpToDate(peer)) return null
    stream.sentMs = nowMs
    return this.#nextBatch(stream)
  }

  /**
   * Batches that are due, at most one per peer: a batch with changes, or an empty one that shows
   * that this controller is alive.
   */
  due(nowMs: number): { readonly peer: NodeId; readonly batch: SoftBatch }[] {
    const batches: { peer: NodeId; batch: SoftBatch }[] = []
    for (const [peer, stream] of this.#streams) {
      const isSilent = nowMs - stream.sentMs >= this.#options.beaconMs
      if (stream.urgent.size === 0 && stream.pending.size === 0 && !isSilent) continue
      batches.push({ peer, batch: this.#nextBatch(stream) })
      stream.sentMs = nowMs
    }
    return batches
  }

  #nextBatch(stream: Stream): SoftBatch {
    const values: SoftValue[] = []
    let bytes = 0
    for (const waiting of [stream.urgent, stream.pending]) {
      for (const [slot, value] of waiting) {
        if (values.length > 0 && bytes + value.bytes > this.#options.batchBytesMax) break
        bytes += value.bytes
        values.push(messageOf(value))
        waiting.delete(slot)
      }
    }
    if (stream.urgent.size === 0 && stream.pending.size === 0) stream.isComplete = true
    const batch = create(SoftBatchSchema, {
      epoch: BigInt(this.#options.epoch),
      stream: BigInt(stream.id),
      number: BigInt(stream.number),
      complete: stream.isComplete,
      values,
    })
    stream.number += 1
    return batch
  }

  #remove(slot: string): void {
    const known = this.#values.get(slot)
    if (known === undefined) return
    this.#values.delete(slot)
    this.#bytes -= known.bytes
  }

  #enqueue(slot: string, value: OwnValue): void {
    for (const { urgent, pending } of this.#streams.values()) {
      const waiting = value.isVital ? urgent : pending
      // Deleting and adding the value moves it to the end of the map, which is ordered by sequence.
      waiting.delete(slot)
      waiting.set(slot, value)
    }
  }
}

function slotOf(topic: string, key: string): string {
  return `${topic}\n${key}`
}

function messageOf({ topic, key, sequence, payload }: OwnValue): SoftValue {
  return create(SoftValueSchema, {
    topic,
    key,
    sequence: BigInt(sequence),
    ...(payload === null ? { withdrawn: true } : { payload }),
  })
}
