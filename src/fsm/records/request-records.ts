import { randomInt } from 'node:crypto'
import { assert } from '../../lib/assert.ts'
import type { Lanes } from './digest.ts'
import { packedTextAt, packedTextBytes, readPackedText, writePackedText } from './packed-text.ts'

export interface RequestRecord {
  readonly caller: string
  /** 16 bytes. */
  readonly id: Uint8Array
  readonly atMs: number
  readonly index: number
  /** Text that stands for what was decided. */
  readonly outcome: string
  readonly lanes: Lanes
}

const ID_BYTES = 16
const LANES_AT = 16
const TIME_AT = 32
const INDEX_AT = 36
/** The caller follows, then the outcome. */
const HEAD_BYTES = 40
/**
 * Time and index are told by how far they lie from those of the first record in the block: 24 days,
 * or 2 billion.
 */
const DISTANCE_MAX = 2 ** 31 - 1
/**
 * What one weighs against `contentBytes` beside its texts: part of what is refused, so it stays as
 * it is.
 */
const NOMINAL_HEAD_BYTES = 56

/** A reference is the number of a block and an offset in it. */
const OFFSET_BITS = 16
const BLOCK_BYTES = 2 ** OFFSET_BITS
const BLOCKS_MAX = 2 ** 15
const SLOTS_MIN = 1024
const NONE = -1

interface Block {
  readonly bytes: Buffer
  /** Of its first record. */
  readonly atMs: number
  readonly index: number
  used: number
  /** Records in it that are not forgotten. */
  live: number
}

interface Place {
  readonly block: Block
  readonly bytes: Buffer
  readonly at: number
}

/**
 * Remembered requests by (caller, id) and in order, as bytes outside of the heap: some 70 each
 * where objects would take 500, and nothing that a garbage collection has to look at. What is
 * forgotten gives its block back with the last record in it.
 */
export class RequestRecords {
  readonly #blocks: (Block | null)[] = []
  readonly #freeBlocks: number[] = []
  #open: number = NONE
  /** References in order, a ring: `#count` of them from `#first` on. */
  #order = new Int32Array(SLOTS_MIN)
  #first = 0
  #count = 0
  #contentBytes = 0
  /** Where to find each reference by its id: open addressing, linear probing, at most half full. */
  #slots = new Int32Array(2 * SLOTS_MIN).fill(NONE)
  /** Of this process alone, so that no caller can choose ids that meet. */
  readonly #seed = randomInt(2 ** 32)

  get size(): number {
    return this.#count
  }

  /**
   * Of the records alone: what was added and not forgotten decides it, not how it came to be there.
   */
  get contentBytes(): number {
    return this.#contentBytes
  }

  /** Of memory, room to grow included. */
  get bytes(): number {
    let bytes = this.#order.byteLength + this.#slots.byteLength
    for (const block of this.#blocks) bytes += block?.bytes.length ?? 0
    return bytes
  }

  /** @returns null when it is not remembered. */
  find(caller: string, id: Uint8Array): RequestRecord | null {
    if (id.length !== ID_BYTES) return null
    const mask = this.#slots.length - 1
    for (let slot = this.#slotOf(id, 0); ; slot = (slot + 1) & mask) {
      const reference = this.#slots[slot] ?? NONE
      if (reference === NONE) return null
      if (!this.#hasId(reference, id)) continue
      const record = this.#read(reference)
      if (record.caller === caller) return record
    }
  }

  /** The one that was added first. */
  oldest(): RequestRecord | null {
    return this.#count === 0 ? null : this.#read(this.#referenceAt(0))
  }

  /** Of the oldest; Infinity when there is none. */
  get oldestAtMs(): number {
    if (this.#count === 0) return Infinity
    return this.#atMsAt(this.#place(this.#referenceAt(0)))
  }

  /** After all others; (caller, id) must not be remembered. */
  add(record: RequestRecord): void {
    assert(record.id.length === ID_BYTES, 'a request id has 16 bytes')
    if ((this.#count + 1) * 2 > this.#slots.length) this.#resize(this.#slots.length * 2)
    const reference = this.#write(record)
    this.#order[(this.#first + this.#count) & (this.#order.length - 1)] = reference
    this.#count += 1
    this.#enter(reference, record.id)
  }

  forgetOldest(): void {
    assert(this.#count > 0, 'there is one to forget')
    const reference = this.#referenceAt(0)
    this.#leave(reference)
    this.#first = (this.#first + 1) & (this.#order.length - 1)
    this.#count -= 1
    const number = reference >>> OFFSET_BITS
    const block = this.#block(number)
    this.#contentBytes -= weightAt(block.bytes, reference & (BLOCK_BYTES - 1))
    block.live -= 1
    if (block.live === 0 && number !== this.#open) this.#free(number)
    if (this.#slots.length > 2 * SLOTS_MIN && this.#count * 16 < this.#slots.length) {
      this.#resize(this.#slots.length / 2)
    }
  }

  /** Brings what was added in any order into that of the log. */
  sortByIndex(): void {
    const references = this.#references()
    const indexes = Float64Array.from(references, (reference) =>
      this.#indexAt(this.#place(reference)),
    )
    const permutation = Int32Array.from(references.keys())
    permutation.sort((a, b) => (indexes[a] ?? 0) - (indexes[b] ?? 0))
    this.#first = 0
    for (const [to, from] of permutation.entries()) this.#order[to] = references[from] ?? NONE
  }

  #referenceAt(at: number): number {
    return this.#order[(this.#first + at) & (this.#order.length - 1)] ?? NONE
  }

  #references(): Int32Array {
    return Int32Array.from({ length: this.#count }, (_, at) => this.#referenceAt(at))
  }

  #block(number: number): Block {
    const block = this.#blocks[number]
    assert(block !== null && block !== undefined, `block ${number} of the request ids is there`)
    return block
  }

  #place(reference: number): Place {
    const block = this.#block(reference >>> OFFSET_BITS)
    return { block, bytes: block.bytes, at: reference & (BLOCK_BYTES - 1) }
  }

  #atMsAt({ block, bytes, at }: Place): number {
    return block.atMs + bytes.readInt32LE(at + TIME_AT)
  }

  #indexAt({ block, bytes, at }: Place): number {
    return block.index + bytes.readInt32LE(at + INDEX_AT)
  }

  #write(record: RequestRecord): number {
    const { caller, id, atMs, index, outcome, lanes } = record
    const length = HEAD_BYTES + packedTextBytes(caller) + packedTextBytes(outcome)
    const reference = this.#takeRoom(length, record)
    const { block, bytes, at } = this.#place(reference)
    bytes.set(id, at)
    bytes.writeInt32LE(lanes.a, at + LANES_AT)
    bytes.writeInt32LE(lanes.b, at + LANES_AT + 4)
    bytes.writeInt32LE(lanes.c, at + LANES_AT + 8)
    bytes.writeInt32LE(lanes.d, at + LANES_AT + 12)
    bytes.writeInt32LE(atMs - block.atMs, at + TIME_AT)
    bytes.writeInt32LE(index - block.index, at + INDEX_AT)
    writePackedText(bytes, writePackedText(bytes, at + HEAD_BYTES, caller), outcome)
    this.#contentBytes += weightAt(bytes, at)
    return reference
  }

  /** Of all that are remembered; nothing may be added or forgotten on the way. */
  *allLanes(): Generator<Lanes> {
    for (let at = 0; at < this.#count; at += 1) yield this.#lanesAt(this.#referenceAt(at))
  }

  #lanesAt(reference: number): Lanes {
    const { bytes, at } = this.#place(reference)
    return {
      a: bytes.readInt32LE(at + LANES_AT),
      b: bytes.readInt32LE(at + LANES_AT + 4),
      c: bytes.readInt32LE(at + LANES_AT + 8),
      d: bytes.readInt32LE(at + LANES_AT + 12),
    }
  }

  #read(reference: number): RequestRecord {
    const place = this.#place(reference)
    const { bytes, at } = place
    const caller = packedTextAt(bytes, at + HEAD_BYTES)
    return {
      caller: readPackedText(bytes, caller),
      id: Uint8Array.from(bytes.subarray(at, at + ID_BYTES)),
      atMs: this.#atMsAt(place),
      index: this.#indexAt(place),
      outcome: readPackedText(bytes, packedTextAt(bytes, caller.end)),
      lanes: this.#lanesAt(reference),
    }
  }

  /** @returns a reference to so many bytes that nothing else stands in. */
  #takeRoom(length: number, of: Pick<RequestRecord, 'atMs' | 'index'>): number {
    let number = this.#open
    if (number === NONE || !hasRoom(this.#block(number), length, of)) {
      // One that is larger than a block gets one of its size, alone.
      number = this.#newBlock(Math.max(BLOCK_BYTES, length), of)
    }
    const block = this.#block(number)
    const reference = (number << OFFSET_BITS) | block.used
    block.used += length
    block.live += 1
    return reference
  }

  #newBlock(length: number, { atMs, index }: Pick<RequestRecord, 'atMs' | 'index'>): number {
    const before = this.#open
    const number = this.#freeBlocks.pop() ?? this.#blocks.length
    assert(number < BLOCKS_MAX, 'the request ids fit the blocks that can be told apart')
    const bytes = Buffer.allocUnsafeSlow(length)
    this.#blocks[number] = { bytes, atMs, index, used: 0, live: 0 }
    this.#open = number
    if (before !== NONE && this.#block(before).live === 0) this.#free(before)
    return number
  }

  #free(number: number): void {
    this.#blocks[number] = null
    this.#freeBlocks.push(number)
  }

  #hasId(reference: number, id: Uint8Array): boolean {
    const { bytes, at } = this.#place(reference)
    for (let i = ID_BYTES - 1; i >= 0; i -= 1) if (bytes[at + i] !== id[i]) return false
    return true
  }

  #slotOf(bytes: Uint8Array, at: number): number {
    let hash = this.#seed
    for (let i = at; i < at + ID_BYTES; i += 4) {
      const word =
        (bytes[i] ?? 0) |
        ((bytes[i + 1] ?? 0) << 8) |
        ((bytes[i + 2] ?? 0) << 16) |
        ((bytes[i + 3] ?? 0) << 24)
      // The mixing steps of MurmurHash3.
      hash = Math.imul(hash ^ word, 0x85eb_ca6b)
      hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35)
      hash ^= hash >>> 16
    }
    return hash & (this.#slots.length - 1)
  }

  #enter(reference: number, id: Uint8Array): void {
    const mask = this.#slots.length - 1
    let slot = this.#slotOf(id, 0)
    while (this.#slots[slot] !== NONE) slot = (slot + 1) & mask
    this.#slots[slot] = reference
  }

  #homeOf(reference: number): number {
    const { bytes, at } = this.#place(reference)
    return this.#slotOf(bytes, at)
  }

  /** Those behind it move up, so that no search ends early at the gap. */
  #leave(reference: number): void {
    const slots = this.#slots
    const mask = slots.length - 1
    let gap = this.#homeOf(reference)
    while (slots[gap] !== reference) gap = (gap + 1) & mask
    for (let slot = (gap + 1) & mask; ; slot = (slot + 1) & mask) {
      const other = slots[slot] ?? NONE
      if (other === NONE) break
      const isBehindItsHome = ((slot - this.#homeOf(other)) & mask) >= ((slot - gap) & mask)
      if (!isBehindItsHome) continue
      slots[gap] = other
      gap = slot
    }
    slots[gap] = NONE
  }

  #resize(slots: number): void {
    const references = this.#references()
    this.#order = new Int32Array(slots / 2)
    this.#order.set(references)
    this.#first = 0
    this.#slots = new Int32Array(slots).fill(NONE)
    const mask = slots - 1
    for (const reference of references) {
      let slot = this.#homeOf(reference)
      while (this.#slots[slot] !== NONE) slot = (slot + 1) & mask
      this.#slots[slot] = reference
    }
  }
}

/** Of one record, as `contentBytes` counts it. */
function weightAt(bytes: Buffer, at: number): number {
  const caller = packedTextAt(bytes, at + HEAD_BYTES)
  const outcome = packedTextAt(bytes, caller.end)
  return NOMINAL_HEAD_BYTES + caller.length + outcome.length
}

function hasRoom(
  block: Block,
  length: number,
  { atMs, index }: Pick<RequestRecord, 'atMs' | 'index'>,
): boolean {
  const isNear =
    Math.abs(atMs - block.atMs) <= DISTANCE_MAX && Math.abs(index - block.index) <= DISTANCE_MAX
  return isNear && block.used + length <= BLOCK_BYTES
}
