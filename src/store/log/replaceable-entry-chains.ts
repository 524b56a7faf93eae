import { assert } from '../../lib/assert.ts'
import type { Index, Position, Term } from '../../raft/types.ts'
import { CHAIN_BYTES } from './wal-format.ts'

const SLOT_BYTES = CHAIN_BYTES + 8

/**
 * Terms and chain values (the hash chain in wal-format.ts) of the log entries that a new leader may
 * still replace, from the last committed entry to the end of the log. One flat buffer contains
 * them, so that an entry takes 24 bytes and no object.
 */
export class ReplaceableEntryChains {
  #bytes: Uint8Array
  #view: DataView
  /** Index of the oldest entry; its data is in slot `#start` of the buffer. */
  #floor: Index
  #start = 0
  #length = 0

  constructor(position: Position, chain: Uint8Array, capacity = 1024) {
    this.#bytes = new Uint8Array(capacity * SLOT_BYTES)
    this.#view = new DataView(this.#bytes.buffer)
    this.#floor = position.index
    this.push(position.term, chain)
  }

  get floor(): Index {
    return this.#floor
  }

  get last(): Position {
    const index = this.#floor + this.#length - 1
    return { term: this.termAt(index), index }
  }

  termAt(index: Index): Term {
    return this.#view.getFloat64(this.#slotAt(index) + CHAIN_BYTES, true)
  }

  /**
   * The chain value of an entry.
   * @returns a view that is valid until entries are added or dropped.
   */
  chainAt(index: Index): Uint8Array {
    const at = this.#slotAt(index)
    return this.#bytes.subarray(at, at + CHAIN_BYTES)
  }

  push(term: Term, chain: Uint8Array): void {
    if ((this.#start + this.#length + 1) * SLOT_BYTES > this.#bytes.length) this.#makeRoom()
    const at = (this.#start + this.#length) * SLOT_BYTES
    this.#bytes.set(chain, at)
    this.#view.setFloat64(at + CHAIN_BYTES, term, true)
    this.#length += 1
  }

  /** Drops all entries after `index`. */
  truncateAfter(index: Index): void {
    assert(index >= this.#floor, 'a committed entry is never replaced')
    this.#length = Math.min(this.#length, index - this.#floor + 1)
  }

  /** Drops all entries before `index`; the entry at `index` stays. */
  dropBefore(index: Index): void {
    const count = Math.min(index - this.#floor, this.#length - 1)
    if (count <= 0) return
    this.#start += count
    this.#length -= count
    this.#floor += count
  }

  /** Drops all entries; the next entry follows `position`. */
  restart(position: Position, chain: Uint8Array): void {
    this.#start = 0
    this.#length = 0
    this.#floor = position.index
    this.push(position.term, chain)
  }

  #slotAt(index: Index): number {
    const slot = index - this.#floor
    assert(slot >= 0 && slot < this.#length, `index ${index} lies outside the chain window`)
    return (this.#start + slot) * SLOT_BYTES
  }

  #makeRoom(): void {
    const from = this.#start * SLOT_BYTES
    const end = (this.#start + this.#length) * SLOT_BYTES
    // If the buffer has more unused space before the oldest entry than used space, the entries move
    // to its start, because that costs less than a larger buffer.
    if (this.#start > this.#length) {
      this.#bytes.copyWithin(0, from, end)
    } else {
      const grown = new Uint8Array(this.#bytes.length * 2)
      grown.set(this.#bytes.subarray(from, end), 0)
      this.#bytes = grown
      this.#view = new DataView(grown.buffer)
    }
    this.#start = 0
  }
}
