import { create } from '@bufbuild/protobuf'

import { SoftBatchSchema, SoftValueSchema } from '../../proto/gen/soft_pb.ts'
import type { SoftBatch, SoftValue } from '../../proto/gen/soft_pb.ts'
import type { NodeId } from '../raft/types.ts'

interface OwnValue {
  readonly topic: string
  readonly key: string
  readonly sequence: number
  /** null: withdrawn. */
  readonly payload: Uint8Array | null
  readonly bytes: number
}

interface Stream {
  number: number
  id: number
  isComplete: boolean
  /** By slot, in the order of sequences. */
  pending: Map<string, OwnValue>
  beganMs: number
  sentMs: number
}

export interface SoftOutboxOptions {
  readonly epoch: number
  readonly beaconMs: number
  readonly batchBytesMax: number
  readonly resyncMsMin: number
}

/** This controller's own values, and what each linked peer has yet to be told of them. */
export class SoftOutbox {
  readonly #options: SoftOutboxOptions
  /** By slot, in the order of their sequences: a value that changes goes to the end. */
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

  set(topic: string, key: string, payload: Uint8Array, bytes: number): void {
    const slot = slotOf(topic, key)
    this.#remove(slot)
    this.#sequence += 1
    const value = { topic, key, sequence: this.#sequence, payload, bytes }
    this.#values.set(slot, value)
    this.#bytes += bytes
    this.#tell(slot, value)
  }

  withdraw(topic: string, key: string): void {
    const slot = slotOf(topic, key)
    this.#remove(slot)
    this.#sequence += 1
    const { batchBytesMax } = this.#options
    // Counts as little as it takes, so that many fit in a batch.
    const bytes = Math.min(key.length + topic.length + 16, batchBytesMax)
    this.#tell(slot, { topic, key, sequence: this.#sequence, payload: null, bytes })
  }

  /** A link has come to stand: everything goes out on a new stream. */
  begin(peer: NodeId, nowMs: number): void {
    this.#lastStream += 1
    this.#streams.set(peer, {
      id: this.#lastStream,
      number: 0,
      isComplete: false,
      pending: new Map(this.#values),
      beganMs: nowMs,
      sentMs: -Infinity,
    })
  }

  end(peer: NodeId): void {
    this.#streams.delete(peer)
  }

  /** The peer has a gap in `stream`. What it says of an older one was answered already. */
  resync(peer: NodeId, epoch: number, stream: number, nowMs: number): void {
    const current = this.#streams.get(peer)
    if (current === undefined) return
    const isOfThis = epoch !== this.#options.epoch || stream === current.id || stream === 0
    if (isOfThis && nowMs - current.beganMs >= this.#options.resyncMsMin) this.begin(peer, nowMs)
  }

  /** At most one batch a peer: what has changed, or a sign of life when it is due. */
  due(nowMs: number): { readonly peer: NodeId; readonly batch: SoftBatch }[] {
    const batches: { peer: NodeId; batch: SoftBatch }[] = []
    for (const [peer, stream] of this.#streams) {
      const isSilent = nowMs - stream.sentMs >= this.#options.beaconMs
      if (stream.pending.size === 0 && !isSilent) continue
      batches.push({ peer, batch: this.#nextBatch(stream) })
      stream.sentMs = nowMs
    }
    return batches
  }

  #nextBatch(stream: Stream): SoftBatch {
    const values: SoftValue[] = []
    let bytes = 0
    for (const [slot, value] of stream.pending) {
      if (values.length > 0 && bytes + value.bytes > this.#options.batchBytesMax) break
      bytes += value.bytes
      values.push(messageOf(value))
      stream.pending.delete(slot)
    }
    if (stream.pending.size === 0) stream.isComplete = true
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

  #tell(slot: string, value: OwnValue): void {
    for (const { pending } of this.#streams.values()) {
      // To the end, where its sequence belongs.
      pending.delete(slot)
      pending.set(slot, value)
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
