import type { SoftBatch, SoftValue } from '../../../proto/gen/soft_pb.ts'
import {
  SOFT_STATE_TTL_MS_MIN,
  SOFT_VALUE_BYTES_MAX,
  SOFT_VALUE_OVERHEAD_BYTES,
} from '../../ports/soft-state.ts'
import type { NodeId } from '../../raft/types.ts'
import { toSafeInteger } from '../message-codec.ts'

/** The part of a topic that receives values. */
export interface SoftValueReceiver {
  readonly ttlMs: number
  readonly ownerBytesMax: number
  readonly isVital: boolean
  /**
   * Stores a received value.
   * @throws on bytes that are not a valid value of the topic.
   */
  take(owner: NodeId, key: string, payload: Uint8Array): void
  /**
   * Drops a value.
   * @param isLost true: the value expired, or its owner restarted without it or is no longer a
   * member; false: the owner withdrew the value, or replaced it with one that is too large.
   */
  drop(owner: NodeId, key: string, isLost: boolean): void
}

interface Held {
  readonly topic: string
  readonly key: string
  readonly bytes: number
  sequence: number
  /**
   * The owner's current stream if it has contained this value; otherwise 0. If the stream is
   * complete and lacks the value, the value is dropped.
   */
  stream: number
}

interface Owner {
  epoch: number
  stream: number
  nextNumber: number
  isComplete: boolean
  /**
   * True if values expired while the owner was silent, so that the owner must send all of them
   * again.
   */
  hasExpired: boolean
  heardMs: number
  readonly held: Map<string, Held>
  /** Bytes of the owner's values by topic. */
  readonly bytes: Map<string, number>
}

/**
 * If an owner's clock was set back before its start, its epoch is lower than before. The lower
 * epoch is accepted after the owner has been silent for this time.
 */
const FORGET_EPOCH_MS = 3000
const KEY_CHARACTERS_MAX = 128

/** Values of other controllers, by owner. */
export class SoftStateInbox {
  readonly #totalBytesMax: number
  readonly #readers: ReadonlyMap<string, SoftValueReceiver>
  readonly #owners = new Map<NodeId, Owner>()
  /** Counts of values that were received but not stored; see `SoftStateCounts`. */
  readonly ignored = { unknownTopics: 0, malformed: 0, tooLarge: 0 }
  #bytes = 0

  constructor(totalBytesMax: number, readers: ReadonlyMap<string, SoftValueReceiver>) {
    this.#totalBytesMax = totalBytesMax
    this.#readers = readers
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The last epoch and stream of an owner; zeros if no batch of this owner has arrived. */
  heardOf(owner: NodeId): { readonly epoch: number; readonly stream: number } {
    const { epoch, stream } = this.#owners.get(owner) ?? { epoch: 0, stream: 0 }
    return { epoch, stream }
  }

  /**
   * Stores the values of a batch.
   * @returns false when an earlier batch was lost or values have expired, so that the owner must
   * send all values again.
   * @throws {RangeError} when a number exceeds a safe integer; then the batch has no effect.
   */
  take(from: NodeId, batch: SoftBatch, nowMs: number): boolean {
    const epoch = toSafeInteger(batch.epoch)
    const stream = toSafeInteger(batch.stream)
    const number = toSafeInteger(batch.number)
    // Checked before the first value is stored, so that a malformed batch has no effect.
    const sequences = batch.values.map(({ sequence }) => toSafeInteger(sequence))
    const owner = this.#owners.get(from)
    const isOlder = owner !== undefined && isBefore(epoch, stream, owner)
    if (isOlder && (epoch === owner.epoch || nowMs - owner.heardMs < FORGET_EPOCH_MS)) return true
    const isNew = owner === undefined || epoch !== owner.epoch || stream !== owner.stream
    if (isNew && number !== 0) return false
    if (!isNew && number < owner.nextNumber) return true
    if (!isNew && (number > owner.nextNumber || owner.hasExpired)) return false
    const current = isNew ? this.#begin(from, owner, epoch, stream) : owner
    current.nextNumber = number + 1
    current.heardMs = nowMs
    for (const [at, value] of batch.values.entries()) {
      this.#takeValue(from, current, value, sequences[at] ?? 0)
    }
    if (batch.complete && !current.isComplete) this.#complete(from, current)
    return true
  }

  /**
   * Drops values of former members, and values whose owner was silent for longer than their time to
   * live.
   */
  sweep(members: ReadonlySet<NodeId>, nowMs: number): void {
    for (const [id, owner] of this.#owners) {
      const silentMs = nowMs - owner.heardMs
      const isMember = members.has(id)
      if (isMember && silentMs <= SOFT_STATE_TTL_MS_MIN) continue
      for (const [slot, { topic }] of owner.held) {
        const ttlMs = this.#readers.get(topic)?.ttlMs ?? 0
        if (isMember && silentMs <= ttlMs) continue
        this.#drop(id, owner, slot, true)
        owner.hasExpired = true
      }
      if (!isMember) this.#owners.delete(id)
    }
  }

  #begin(from: NodeId, before: Owner | undefined, epoch: number, stream: number): Owner {
    const owner: Owner = {
      epoch,
      stream,
      nextNumber: 0,
      isComplete: false,
      hasExpired: false,
      heardMs: 0,
      held: before?.held ?? new Map<string, Held>(),
      bytes: before?.bytes ?? new Map<string, number>(),
    }
    // Sequence numbers are unique only within an epoch, so numbers of two epochs cannot be
    // compared.
    if (before?.epoch !== epoch) for (const held of owner.held.values()) held.sequence = 0
    for (const held of owner.held.values()) held.stream = 0
    this.#owners.set(from, owner)
    return owner
  }

  #takeValue(from: NodeId, owner: Owner, value: SoftValue, sequence: number): void {
    const { topic, key, payload } = value
    const reader = this.#readers.get(topic)
    if (reader === undefined) {
      // The value only counts as ignored, because a newer release may have topics that this release
      // does not know.
      this.ignored.unknownTopics += 1
      return
    }
    if (key.length > KEY_CHARACTERS_MAX) {
      this.ignored.malformed += 1
      return
    }
    const slot = `${topic}\n${key}`
    const known = owner.held.get(slot)
    if (known !== undefined && sequence <= known.sequence) {
      known.stream = owner.stream
      return
    }
    if (value.withdrawn) {
      this.#drop(from, owner, slot)
      return
    }
    const bytes = key.length + payload.length + SOFT_VALUE_OVERHEAD_BYTES
    const topicBytes = (owner.bytes.get(topic) ?? 0) - (known?.bytes ?? 0) + bytes
    const totalBytes = this.#bytes - (known?.bytes ?? 0) + bytes
    const isBeyondTotal = totalBytes > this.#totalBytesMax && !reader.isVital
    const isTooMuch = topicBytes > reader.ownerBytesMax || isBeyondTotal
    if (payload.length > SOFT_VALUE_BYTES_MAX || isTooMuch) {
      this.ignored.tooLarge += 1
      this.#drop(from, owner, slot)
      return
    }
    try {
      reader.take(from, key, payload)
    } catch {
      this.ignored.malformed += 1
      if (known !== undefined) known.stream = owner.stream
      return
    }
    owner.held.set(slot, { topic, key, bytes, sequence, stream: owner.stream })
    owner.bytes.set(topic, topicBytes)
    this.#bytes = totalBytes
  }

  /**
   * Called after the owner has sent all of its values. Drops the values that it did not send.
   */
  #complete(from: NodeId, owner: Owner): void {
    owner.isComplete = true
    for (const [slot, held] of owner.held) {
      // With sequence 0, the owner has restarted and did not send the value again, so the value
      // counts as lost, not as withdrawn.
      if (held.stream !== owner.stream) this.#drop(from, owner, slot, held.sequence === 0)
    }
  }

  #drop(from: NodeId, owner: Owner, slot: string, isLost = false): void {
    const held = owner.held.get(slot)
    if (held === undefined) return
    owner.held.delete(slot)
    owner.bytes.set(held.topic, (owner.bytes.get(held.topic) ?? 0) - held.bytes)
    this.#bytes -= held.bytes
    this.#readers.get(held.topic)?.drop(from, held.key, isLost)
  }
}

function isBefore(epoch: number, stream: number, owner: Owner): boolean {
  return epoch < owner.epoch || (epoch === owner.epoch && stream < owner.stream)
}
