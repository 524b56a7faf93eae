import {
  findChunkIndex,
  comparesByCodeUnits,
  lowerBound,
  sortTexts,
} from '../../lib/text/text-order.ts'

const CHUNK_LENGTH_MAX = 512

/** A set of ids that is iterated in sorted order (by bytes). */
export interface IdScope extends Iterable<string> {
  readonly size: number
  has(id: string): boolean
  /** At most `count` ids, beginning with the one at position `start`. */
  slice(start: number, count: number): readonly string[]
}

/** A `Set` as an `IdScope`. Its ids are sorted when they are first iterated. */
export class SetScope implements IdScope {
  readonly #ids: ReadonlySet<string>
  #sorted: readonly string[] | null = null

  constructor(ids: ReadonlySet<string>) {
    this.#ids = ids
  }

  get size(): number {
    return this.#ids.size
  }

  has(id: string): boolean {
    return this.#ids.has(id)
  }

  #walk(): readonly string[] {
    this.#sorted ??= sortTexts([...this.#ids])
    return this.#sorted
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#walk()[Symbol.iterator]()
  }

  slice(start: number, count: number): readonly string[] {
    return this.#walk().slice(start, start + count)
  }
}

/**
 * A sorted set of ids, or of other strings (by bytes). It consists of short chunks, so that an
 * insertion into a large set moves few ids. With one array of 100,000 ids, a write would cost more
 * than the rest of the apply step.
 */
export class SortedIds implements IdScope {
  readonly #chunks: string[][] = []
  #size = 0

  /** Creates a set from ids that are already sorted and without duplicates. */
  static of(sorted: readonly string[]): SortedIds {
    const made = new SortedIds()
    const length = CHUNK_LENGTH_MAX >>> 1
    for (let start = 0; start < sorted.length; start += length) {
      made.#chunks.push(sorted.slice(start, start + length))
    }
    made.#size = sorted.length
    return made
  }

  /** Returns an independent copy of the set. */
  copy(): SortedIds {
    const made = new SortedIds()
    for (const chunk of this.#chunks) made.#chunks.push(chunk.slice())
    made.#size = this.#size
    return made
  }

  get size(): number {
    return this.#size
  }

  has(id: string): boolean {
    const isPlain = comparesByCodeUnits(id)
    const chunk = this.#chunks[findChunkIndex(this.#chunks, id, isPlain)]
    return chunk !== undefined && chunk[lowerBound(chunk, id, isPlain)] === id
  }

  /**
   * Adds an id.
   * @returns false when the id was already present.
   */
  add(id: string): boolean {
    // Fast path for a common case: a set that gets its first id needs no search.
    if (this.#size === 0) {
      this.#chunks.push([id])
      this.#size = 1
      return true
    }
    const isPlain = comparesByCodeUnits(id)
    const at = findChunkIndex(this.#chunks, id, isPlain)
    const chunk = this.#chunks[at] ?? []
    const position = lowerBound(chunk, id, isPlain)
    if (chunk[position] === id) return false
    this.#size += 1
    const isLast = position === chunk.length
    if (isLast) chunk.push(id)
    else chunk.splice(position, 0, id)
    if (chunk.length > CHUNK_LENGTH_MAX) {
      // If ids are appended in order, each chunk is filled completely; otherwise a full chunk is
      // split in half.
      const kept = isLast ? CHUNK_LENGTH_MAX : chunk.length >>> 1
      this.#chunks.splice(at + 1, 0, chunk.splice(kept))
    }
    return true
  }

  delete(id: string): boolean {
    if (this.#size === 1 && this.#chunks[0]?.[0] === id) {
      this.#chunks.length = 0
      this.#size = 0
      return true
    }
    const isPlain = comparesByCodeUnits(id)
    const at = findChunkIndex(this.#chunks, id, isPlain)
    const chunk = this.#chunks[at]
    if (chunk === undefined) return false
    const position = lowerBound(chunk, id, isPlain)
    if (chunk[position] !== id) return false
    chunk.splice(position, 1)
    this.#size -= 1
    if (chunk.length === 0) this.#chunks.splice(at, 1)
    return true
  }

  *[Symbol.iterator](): Iterator<string> {
    for (const chunk of this.#chunks) yield* chunk
  }

  /** Number of ids before `id`, which need not be in the set. */
  rank(id: string): number {
    const isPlain = comparesByCodeUnits(id)
    const at = findChunkIndex(this.#chunks, id, isPlain)
    let before = 0
    for (let i = 0; i < at; i += 1) before += this.#chunks[i]?.length ?? 0
    return before + lowerBound(this.#chunks[at] ?? [], id, isPlain)
  }

  slice(start: number, count: number): string[] {
    const page: string[] = []
    let skip = start
    for (const chunk of this.#chunks) {
      if (skip >= chunk.length) {
        skip -= chunk.length
        continue
      }
      for (let i = skip; i < chunk.length; i += 1) {
        if (page.length >= count) return page
        const id = chunk[i]
        if (id !== undefined) page.push(id)
      }
      skip = 0
    }
    return page
  }
}

export const emptyIds: SortedIds = new SortedIds()
