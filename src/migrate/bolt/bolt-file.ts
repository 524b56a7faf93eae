import { damagedDatabaseFault, MigrationFault } from '../fault.ts'
import { migrateLimits } from '../limits.ts'
import type { ByteSource } from './byte-source.ts'
import { type BoltMeta, readBoltMeta } from './meta.ts'
import { type LeafElement, PAGE_HEADER_BYTES, BoltPage, pageFlags } from './bolt-page.ts'

const BUCKET_HEADER_BYTES = 16
const PROGRESS_PAGES = 4096

/**
 * A bucket: either a tree of pages, or one leaf page inside the value by which its parent refers to
 * it.
 */
export interface BoltBucket {
  /** Number of the root page; 0 if the bucket is inline. */
  readonly rootPage: number
  readonly inline: Uint8Array
  /** Nesting depth: the number of buckets that contain this bucket, directly or indirectly. */
  readonly depth: number
}

/**
 * A key with its value or with the bucket below it. The bytes are valid until the file is closed.
 */
export interface BoltEntry {
  readonly key: Uint8Array
  readonly value: Uint8Array
  /** null if the entry has a value. */
  readonly bucket: BoltBucket | null
}

/** Result of checking the whole file. */
export interface BoltCheckResult {
  /** Number of pages that belong to buckets and the free list. */
  readonly reachablePages: number
  readonly freePages: number
  readonly entries: number
}

/** Bounds of the keys below a branch element; null: no bound. */
interface KeyRange {
  readonly from: Uint8Array | null
  readonly below: Uint8Array | null
}

const anyKey: KeyRange = { from: null, below: null }

/**
 * Reads a bbolt file without trusting its content. Every walk visits a page at most once, so time
 * and memory are limited by the size of the file. Writes nothing and takes no lock.
 */
export class BoltFile {
  readonly meta: BoltMeta
  readonly #source: ByteSource

  /**
   * @throws {MigrationFault} when neither of the file's two meta pages is intact, or the file is
   * cut off or too large.
   */
  constructor(source: ByteSource) {
    this.#source = source
    this.meta = readBoltMeta(source)
  }

  get root(): BoltBucket {
    return { rootPage: this.meta.rootPage, inline: new Uint8Array(0), depth: 0 }
  }

  /**
   * Reads every page in use, and checks that each page of the file is either used once or free.
   * @param onProgress called with the fraction of the file that was read, 0 to 1.
   * @throws {MigrationFault} DAMAGED or TOO_LARGE.
   */
  check(onProgress: (share: number) => void = () => undefined): BoltCheckResult {
    const visited = new VisitedPages(this.meta, onProgress)
    let entries = 0
    const count = (bucket: BoltBucket): void => {
      for (const entry of this.entries(bucket, visited)) {
        entries += 1
        if (entry.bucket !== null) count(entry.bucket)
      }
    }
    count(this.root)
    const freePages = this.#freePages(visited)
    const { reachable } = visited
    // @guard hostile-database--whole
    if (reachable + freePages + 2 !== this.meta.highWaterMark) {
      throw damagedDatabaseFault('some pages are neither in use nor free')
    }
    return { reachablePages: reachable, freePages, entries }
  }

  /** Creates an empty set of visited pages for {@link entries}. */
  visitedPages(): VisitedPages {
    return new VisitedPages(this.meta, () => undefined)
  }

  /**
   * The bucket at a path of names; null if it does not exist.
   * @throws {MigrationFault} DAMAGED or TOO_LARGE.
   */
  find(...names: readonly string[]): BoltBucket | null {
    const visited = this.visitedPages()
    let bucket: BoltBucket | null = this.root
    for (const name of names) {
      const wanted = Buffer.from(name, 'utf8')
      let found: BoltBucket | null = null
      for (const entry of this.entries(bucket, visited)) {
        if (wanted.equals(entry.key)) found = entry.bucket
      }
      if (found === null) return null
      bucket = found
    }
    return bucket
  }

  /**
   * The entries of a bucket in the order of their keys.
   * @param visited pages that this walk has visited; a second visit of a page means that the file
   * is damaged.
   * @throws {MigrationFault} DAMAGED or TOO_LARGE.
   */
  *entries(bucket: BoltBucket, visited: VisitedPages): Generator<BoltEntry> {
    if (bucket.rootPage === 0) {
      for (const element of this.#inlineElements(bucket.inline)) {
        yield { key: element.key, value: element.value, bucket: null }
      }
      return
    }
    for (const element of this.#tree(bucket.rootPage, visited, anyKey, 0)) {
      yield {
        key: element.key,
        value: element.value,
        bucket: element.isBucket ? this.#bucketOf(element.value, bucket.depth + 1) : null,
      }
    }
  }

  #bucketOf(value: Uint8Array, depth: number): BoltBucket {
    if (depth > migrateLimits.bucketDepthMax) {
      throw damagedDatabaseFault('its buckets are nested too deep')
    }
    if (value.length < BUCKET_HEADER_BYTES) throw damagedDatabaseFault('a bucket is cut off')
    const rootPage = new BoltPage(value, this.meta.isLittleEndian).u64(0)
    return { rootPage, inline: value.subarray(BUCKET_HEADER_BYTES), depth }
  }

  #inlineElements(bytes: Uint8Array): LeafElement[] {
    if (bytes.length < PAGE_HEADER_BYTES) throw damagedDatabaseFault('a small bucket is cut off')
    const page = new BoltPage(bytes, this.meta.isLittleEndian)
    const isLeaf = page.flags === pageFlags.leaf && page.id === 0 && page.overflow === 0
    const elements = isLeaf ? page.leafElements() : null
    if (elements === null || elements.some(({ isBucket }) => isBucket)) {
      throw damagedDatabaseFault('a small bucket is no list of values')
    }
    requireRising(elements, anyKey)
    return elements
  }

  *#tree(
    id: number,
    visited: VisitedPages,
    range: KeyRange,
    depth: number,
  ): Generator<LeafElement> {
    if (depth > migrateLimits.treeDepthMax) throw damagedDatabaseFault('its pages are too deep')
    const page = this.#page(id, visited)
    if (page.flags === pageFlags.leaf) {
      const elements = page.leafElements()
      requireRising(elements, range)
      yield* elements
      return
    }
    if (page.flags !== pageFlags.branch || page.count === 0) {
      throw damagedDatabaseFault(`page ${id} belongs to no bucket`)
    }
    const elements = page.branchElements()
    requireRising(elements, range)
    for (const [at, { key, child }] of elements.entries()) {
      const below = elements[at + 1]?.key ?? range.below
      yield* this.#tree(child, visited, { from: key, below }, depth + 1)
    }
  }

  #freePages(visited: VisitedPages): number {
    const { freeListPage, highWaterMark } = this.meta
    if (freeListPage > Number.MAX_SAFE_INTEGER) {
      throw damagedDatabaseFault('it does not list its free pages')
    }
    const page = this.#page(freeListPage, visited)
    if (page.flags !== pageFlags.freeList) {
      throw damagedDatabaseFault('its list of free pages is another page')
    }
    const free = page.freePages()
    let last = 1
    for (const id of free) {
      if (id <= last || id >= highWaterMark || visited.has(id)) {
        throw damagedDatabaseFault('its list of free pages contradicts its content')
      }
      last = id
    }
    return free.length
  }

  #page(id: number, visited: VisitedPages): BoltPage {
    const { pageSize, isLittleEndian } = this.meta
    if (id < 2 || id >= this.meta.highWaterMark) {
      throw damagedDatabaseFault(`there is no page ${id}`)
    }
    const first = this.#read(id * pageSize, pageSize)
    const head = new BoltPage(first, isLittleEndian)
    const pages = head.overflow + 1
    if (head.id !== id) throw damagedDatabaseFault(`page ${id} is another page`)
    visited.add(id, pages)
    if (pages === 1) return head
    if (pages * pageSize > migrateLimits.pageBytesMax) {
      throw new MigrationFault(
        'TOO_LARGE',
        `page ${id} of the database has more than ${migrateLimits.pageBytesMax} bytes`,
      )
    }
    return new BoltPage(this.#read(id * pageSize, pages * pageSize), isLittleEndian)
  }

  #read(offset: number, length: number): Uint8Array {
    const bytes = this.#source.read(offset, length)
    if (bytes.length === length) return bytes
    throw damagedDatabaseFault('it became shorter while it was read')
  }
}

/** Pages that one walk has visited. */
export class VisitedPages {
  readonly #bits: Uint8Array
  readonly #highWaterMark: number
  readonly #onProgress: (share: number) => void
  #reachable = 0
  #nextReport = PROGRESS_PAGES

  constructor({ highWaterMark }: BoltMeta, onProgress: (share: number) => void) {
    this.#bits = new Uint8Array(Math.ceil(highWaterMark / 8))
    this.#highWaterMark = highWaterMark
    this.#onProgress = onProgress
  }

  /** Number of pages that the walk has visited. */
  get reachable(): number {
    return this.#reachable
  }

  has(id: number): boolean {
    return ((this.#bits[id >>> 3] ?? 0) & (1 << (id & 7))) !== 0
  }

  /**
   * Adds `pages` consecutive pages, beginning with page `id`.
   * @throws {MigrationFault} DAMAGED if one of these pages is already in the set, or does not exist
   * in the file.
   */
  add(id: number, pages: number): void {
    if (id + pages > this.#highWaterMark) {
      throw damagedDatabaseFault(`page ${id} continues after the last page`)
    }
    for (let at = id; at < id + pages; at += 1) {
      // @guard hostile-database--twice
      if (this.has(at)) throw damagedDatabaseFault(`page ${at} is used twice`)
      this.#bits[at >>> 3] = (this.#bits[at >>> 3] ?? 0) | (1 << (at & 7))
    }
    this.#reachable += pages
    if (this.#reachable < this.#nextReport) return
    this.#nextReport = this.#reachable + PROGRESS_PAGES
    this.#onProgress(this.#reachable / this.#highWaterMark)
  }
}

function requireRising(elements: readonly { readonly key: Uint8Array }[], range: KeyRange): void {
  let last: Uint8Array | null = null
  for (const { key } of elements) {
    const isAfter = last === null ? isFrom(key, range.from) : Buffer.compare(last, key) < 0
    if (!isAfter) throw damagedDatabaseFault('its keys are not in order')
    last = key
  }
  if (last === null || range.below === null || Buffer.compare(last, range.below) < 0) return
  throw damagedDatabaseFault('its keys are not in order')
}

function isFrom(key: Uint8Array, from: Uint8Array | null): boolean {
  return from === null || Buffer.compare(key, from) >= 0
}
