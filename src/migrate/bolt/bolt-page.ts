/** Numbers and elements of a page. Source: bbolt 4e65d8fd, internal/common/page.go:18-321. */
import { damagedDatabaseFault } from '../fault.ts'

export const PAGE_HEADER_BYTES = 16
const ELEMENT_BYTES = 16
const KEY_BYTES_MAX = 32_768
const IS_BUCKET = 1

export const pageFlags = { branch: 1, leaf: 2, meta: 4, freeList: 0x10 } as const

/** An element of a leaf page. */
export interface LeafElement {
  readonly key: Uint8Array
  readonly value: Uint8Array
  readonly isBucket: boolean
}

/** An element of a branch page. */
export interface BranchElement {
  /** Lowest key that the child may contain. */
  readonly key: Uint8Array
  readonly child: number
}

/** One page with its overflow pages, or the page inside an inline bucket's value. */
export class BoltPage {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  readonly #isLittleEndian: boolean

  constructor(bytes: Uint8Array, isLittleEndian: boolean) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    this.#isLittleEndian = isLittleEndian
  }

  get id(): number {
    return this.u64(0)
  }
  get flags(): number {
    return this.#view.getUint16(8, this.#isLittleEndian)
  }
  get count(): number {
    return this.#view.getUint16(10, this.#isLittleEndian)
  }
  /** Number of overflow pages that belong to this page. */
  get overflow(): number {
    return this.u32(12)
  }

  u32(offset: number): number {
    return this.#view.getUint32(offset, this.#isLittleEndian)
  }

  /**
   * Reads an unsigned 64-bit number. The result is inexact above 2^53, which does not matter
   * because all limits are lower.
   */
  u64(offset: number): number {
    const [high, low] = this.#isLittleEndian ? [offset + 4, offset] : [offset, offset + 4]
    return this.u32(high) * 0x1_0000_0000 + this.u32(low)
  }

  bigU64(offset: number): bigint {
    return this.#view.getBigUint64(offset, this.#isLittleEndian)
  }

  /** @throws {MigrationFault} DAMAGED. */
  leafElements(): LeafElement[] {
    const elements: LeafElement[] = []
    const table = this.#table()
    for (let at = PAGE_HEADER_BYTES; at < table.end; at += ELEMENT_BYTES) {
      const [flags, keySize, valueSize] = [this.u32(at), this.u32(at + 8), this.u32(at + 12)]
      if (flags > IS_BUCKET) throw damagedDatabaseFault('an element has an unknown flag')
      const start = at + this.u32(at + 4)
      table.take(start, keySize, valueSize)
      elements.push({
        key: this.#bytes.subarray(start, start + keySize),
        value: this.#bytes.subarray(start + keySize, start + keySize + valueSize),
        isBucket: flags === IS_BUCKET,
      })
    }
    return elements
  }

  /** @throws {MigrationFault} DAMAGED. */
  branchElements(): BranchElement[] {
    const elements: BranchElement[] = []
    const table = this.#table()
    for (let at = PAGE_HEADER_BYTES; at < table.end; at += ELEMENT_BYTES) {
      const keySize = this.u32(at + 4)
      const start = at + this.u32(at)
      table.take(start, keySize, 0)
      elements.push({
        key: this.#bytes.subarray(start, start + keySize),
        child: this.u64(at + 8),
      })
    }
    return elements
  }

  /**
   * Ids of the free pages.
   * @throws {MigrationFault} DAMAGED.
   */
  freePages(): number[] {
    const isLong = this.count === 0xffff
    const start = PAGE_HEADER_BYTES + (isLong ? 8 : 0)
    const count = isLong && this.#bytes.length >= start ? this.u64(PAGE_HEADER_BYTES) : this.count
    if (start + count * 8 > this.#bytes.length) {
      throw damagedDatabaseFault('the list of free pages is longer than its page')
    }
    return Array.from({ length: count }, (_, at) => this.u64(start + at * 8))
  }

  #table(): ElementTable {
    const end = PAGE_HEADER_BYTES + this.count * ELEMENT_BYTES
    if (end > this.#bytes.length) throw damagedDatabaseFault('a page has more elements than room')
    return new ElementTable(end, this.#bytes.length)
  }
}

/** Checks that all elements are inside their page, and together are no larger than the page. */
class ElementTable {
  readonly end: number
  readonly #length: number
  #left: number

  constructor(end: number, length: number) {
    this.end = end
    this.#length = length
    this.#left = length - end
  }

  take(start: number, keySize: number, valueSize: number): void {
    if (keySize === 0 || keySize > KEY_BYTES_MAX) {
      throw damagedDatabaseFault('a key is empty or too long')
    }
    // Sums the bytes of all elements: if elements shared bytes, a small page could decode to any
    // amount of data.
    // @guard hostile-database--shared
    this.#left -= keySize + valueSize
    const isInside = start >= this.end && start + keySize + valueSize <= this.#length
    if (!isInside || this.#left < 0) throw damagedDatabaseFault('an element leaves its page')
  }
}
