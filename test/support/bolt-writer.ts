import { fnv1a } from '../../src/migrate/bolt/meta.ts'

// Writes bbolt files, so that the tests need no database files of another program. Source of the
// format: bbolt 4e65d8fd, internal/common/page.go, meta.go and bucket.go.

/** Keys with values, or with buckets of keys. */
export interface BoltTree {
  readonly entries: readonly (readonly [Uint8Array, Uint8Array | BoltTree])[]
}

interface BoltWriterOptions {
  readonly pageSize?: number
  readonly isLittleEndian?: boolean
  /** The number of pages that belong to no bucket and are listed as free. */
  readonly freePages?: number
}

const HEADER = 16
const ELEMENT = 16
const flags = { branch: 1, leaf: 2, meta: 4, freeList: 0x10 } as const

/** A database file with these root buckets. */
export function writeBolt(root: BoltTree, options: BoltWriterOptions = {}): Buffer {
  return new BoltWriter(options).file(root)
}

/** A bucket; names are UTF-8. */
export function bucketOf(entries: Readonly<Record<string, Uint8Array | BoltTree>>): BoltTree {
  return {
    entries: Object.entries(entries).map(([name, value]) => [Buffer.from(name, 'utf8'), value]),
  }
}

interface Element {
  readonly key: Uint8Array
  readonly value: Uint8Array
  readonly isBucket: boolean
}

class BoltWriter {
  readonly #pageSize: number
  readonly #isLittleEndian: boolean
  readonly #freeCount: number
  readonly #pages: Buffer[] = []
  /** The next page to use; the first two pages are meta pages. */
  #next = 2

  constructor({ pageSize = 4096, isLittleEndian = true, freePages = 3 }: BoltWriterOptions) {
    this.#pageSize = pageSize
    this.#isLittleEndian = isLittleEndian
    this.#freeCount = freePages
  }

  file(root: BoltTree): Buffer {
    const free = Array.from({ length: this.#freeCount }, () => this.#hole())
    const rootPage = this.#tree(this.#elements(root))
    const freeList = this.#freeList(free)
    const metas = [this.#meta(0, 8n, rootPage, freeList), this.#meta(1, 7n, rootPage, freeList)]
    return Buffer.concat([...metas, ...this.#pages])
  }

  /** A page with old content, as deletions leave it. */
  #hole(): number {
    const page = Buffer.alloc(this.#pageSize, 0xa5)
    this.#pages.push(page)
    return this.#next++
  }

  #elements({ entries }: BoltTree): Element[] {
    return [...entries]
      .sort(([a], [b]) => Buffer.compare(a, b))
      .map(([key, value]) =>
        value instanceof Uint8Array
          ? { key, value, isBucket: false }
          : { key, value: this.#bucket(value), isBucket: true },
      )
  }

  /** A small bucket without nested buckets is written inline, into its value. */
  #bucket(tree: BoltTree): Buffer {
    const elements = this.#elements(tree)
    const head = Buffer.alloc(HEADER)
    const isSmall =
      elements.every(({ isBucket }) => !isBucket) && bytesOf(elements) <= this.#pageSize / 4
    if (isSmall) return Buffer.concat([head, this.#leaf(0, elements, bytesOf(elements))])
    this.#u64(head, BigInt(this.#tree(elements)), 0)
    return head
  }

  /** @returns the page number of the root of the tree. */
  #tree(elements: readonly Element[]): number {
    let level = piecesOf(elements, this.#pageSize, bytesOf).map((piece) => {
      const pages = Math.max(1, Math.ceil(bytesOf(piece) / this.#pageSize))
      const id = this.#add((page) => this.#leaf(page, piece, pages * this.#pageSize), pages)
      return { key: piece[0]?.key ?? new Uint8Array(0), id }
    })
    while (level.length > 1) {
      const bytes = (some: readonly { readonly key: Uint8Array }[]): number =>
        some.reduce((sum, { key }) => sum + ELEMENT + key.length, HEADER)
      level = piecesOf(level, this.#pageSize, bytes).map((piece) => ({
        key: piece[0]?.key ?? new Uint8Array(0),
        id: this.#add((page) => this.#branch(page, piece), 1),
      }))
    }
    return level[0]?.id ?? 0
  }

  #add(make: (id: number) => Buffer, pages: number): number {
    const id = this.#next
    this.#next += pages
    this.#pages.push(make(id))
    return id
  }

  #leaf(id: number, elements: readonly Element[], size: number): Buffer {
    const page = this.#page(id, flags.leaf, elements.length, size)
    let at = HEADER + elements.length * ELEMENT
    for (const [index, { key, value, isBucket }] of elements.entries()) {
      const element = HEADER + index * ELEMENT
      this.#u32(page, isBucket ? 1 : 0, element)
      this.#u32(page, at - element, element + 4)
      this.#u32(page, key.length, element + 8)
      this.#u32(page, value.length, element + 12)
      page.set(key, at)
      page.set(value, at + key.length)
      at += key.length + value.length
    }
    return page
  }

  #branch(id: number, children: readonly { readonly key: Uint8Array; readonly id: number }[]) {
    const page = this.#page(id, flags.branch, children.length, this.#pageSize)
    let at = HEADER + children.length * ELEMENT
    for (const [index, child] of children.entries()) {
      const element = HEADER + index * ELEMENT
      this.#u32(page, at - element, element)
      this.#u32(page, child.key.length, element + 4)
      this.#u64(page, BigInt(child.id), element + 8)
      page.set(child.key, at)
      at += child.key.length
    }
    return page
  }

  #freeList(free: readonly number[]): number {
    const size = Math.ceil((HEADER + free.length * 8) / this.#pageSize) * this.#pageSize
    return this.#add((id) => {
      const page = this.#page(id, flags.freeList, free.length, size)
      for (const [at, one] of free.entries()) this.#u64(page, BigInt(one), HEADER + at * 8)
      return page
    }, size / this.#pageSize)
  }

  #meta(id: number, transaction: bigint, rootPage: number, freeList: number): Buffer {
    const page = this.#page(id, flags.meta, 0, this.#pageSize)
    this.#u32(page, 0xed0cdaed, HEADER)
    this.#u32(page, 2, HEADER + 4)
    this.#u32(page, this.#pageSize, HEADER + 8)
    this.#u64(page, BigInt(rootPage), HEADER + 16)
    this.#u64(page, BigInt(freeList), HEADER + 32)
    this.#u64(page, BigInt(this.#next), HEADER + 40)
    this.#u64(page, transaction, HEADER + 48)
    this.#u64(page, fnv1a(page.subarray(HEADER, HEADER + 56)), HEADER + 56)
    return page
  }

  #page(id: number, flag: number, count: number, size: number): Buffer {
    const page = Buffer.alloc(size)
    this.#u64(page, BigInt(id), 0)
    this.#u16(page, flag, 8)
    this.#u16(page, count, 10)
    this.#u32(page, Math.max(0, Math.ceil(size / this.#pageSize) - 1), 12)
    return page
  }

  #u16(page: Buffer, value: number, at: number): void {
    if (this.#isLittleEndian) page.writeUInt16LE(value, at)
    else page.writeUInt16BE(value, at)
  }

  #u32(page: Buffer, value: number, at: number): void {
    if (this.#isLittleEndian) page.writeUInt32LE(value, at)
    else page.writeUInt32BE(value, at)
  }

  #u64(page: Buffer, value: bigint, at: number): void {
    if (this.#isLittleEndian) page.writeBigUInt64LE(value, at)
    else page.writeBigUInt64BE(value, at)
  }
}

function bytesOf(elements: readonly Element[]): number {
  return elements.reduce((sum, { key, value }) => sum + ELEMENT + key.length + value.length, HEADER)
}

/**
 * Groups of elements that each fit in a page; an element that is larger than a page is a separate
 * group.
 */
function piecesOf<T>(
  all: readonly T[],
  room: number,
  bytes: (some: readonly T[]) => number,
): T[][] {
  const pieces: T[][] = [[]]
  for (const one of all) {
    const last = pieces.at(-1) ?? []
    if (last.length > 0 && bytes([...last, one]) > room) pieces.push([one])
    else last.push(one)
  }
  return pieces
}
