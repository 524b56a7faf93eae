import { assert, requirePresent } from '../lib/assert.ts'
import { ENTRY_HEADER_BYTES } from './entry-codec.ts'
import type { Entry, Index, Position, Term } from './types.ts'

/**
 * Whether a log is at least as up to date as another (Raft paper 5.4.1): the log with the later
 * last term is more up to date; if the terms are equal, the longer log.
 */
export function isLogUpToDate(position: Position, other: Position): boolean {
  // @guard term-before-length-in-votes, 09-longer-log-beats-later-term
  if (position.term !== other.term) return position.term > other.term
  return position.index >= other.index
}

/** Encoded size of an entry, including its header. */
export function entryBytes(entry: Entry): number {
  return ENTRY_HEADER_BYTES + entry.data.length
}

/**
 * The log entries in memory: those after `base`, with consecutive indexes and terms that never
 * decrease.
 */
export class RaftLog {
  #base: Position
  #entries: Entry[]
  /**
   * Byte offsets with a common origin: the end of the base, and the end of each entry in memory.
   */
  #baseEnd = 0
  #ends: number[] = []

  constructor(base: Position, entries: Entry[]) {
    this.#base = base
    this.#entries = []
    this.append(entries)
  }

  get base(): Position {
    return this.#base
  }

  /**
   * Bytes of the in-memory entries from `after` (exclusive) through `through`, as `entryBytes`
   * counts them.
   */
  bytesBetween(after: Index, through: Index): number {
    return Math.max(0, this.#endOf(through) - this.#endOf(after))
  }

  #endOf(index: Index): number {
    const at = Math.min(index, this.lastIndex) - this.#base.index - 1
    return this.#ends[at] ?? this.#baseEnd
  }

  get lastIndex(): Index {
    return this.#base.index + this.#entries.length
  }

  get last(): Position {
    const entry = this.#entries.at(-1)
    return entry === undefined ? this.#base : { term: entry.term, index: entry.index }
  }

  /** Timestamp of the last entry, UTC ms; 0 when no entry is in memory. */
  get lastTimeMs(): number {
    return this.#entries.at(-1)?.timeMs ?? 0
  }

  has(index: Index): boolean {
    return index > this.#base.index && index <= this.lastIndex
  }

  /**
   * Term of the entry at an index, or of the base.
   * @returns null when the log has compacted the entry, or the index is beyond the last entry.
   */
  termAt(index: Index): Term | null {
    if (index === this.#base.index) return this.#base.term
    return this.#entries[index - this.#base.index - 1]?.term ?? null
  }

  at(index: Index): Entry {
    return requirePresent(
      this.#entries[index - this.#base.index - 1],
      `entry ${index} is in memory`,
    )
  }

  matches(position: Position): boolean {
    return this.termAt(position.index) === position.term
  }

  append(entries: readonly Entry[]): void {
    let { term, index } = this.last
    let end = this.#ends.at(-1) ?? this.#baseEnd
    for (const entry of entries) {
      assert(entry.index === index + 1, `entry ${entry.index} does not follow ${index}`)
      assert(entry.term >= term, `entry ${entry.index} has an older term than the one before it`)
      end += entryBytes(entry)
      this.#entries.push(entry)
      this.#ends.push(end)
      index = entry.index
      term = entry.term
    }
  }

  /** Drops the entry at index `from` and all entries after it. */
  truncate(from: Index): void {
    assert(from > this.#base.index, `entry ${from} is compacted and cannot be replaced`)
    this.#entries.length = Math.min(this.#entries.length, from - this.#base.index - 1)
    this.#ends.length = this.#entries.length
  }

  compact(position: Position): void {
    assert(this.matches(position), `compaction at ${position.index} names another term`)
    const gone = position.index - this.#base.index
    this.#baseEnd = this.#endOf(position.index)
    this.#entries.splice(0, gone)
    this.#ends.splice(0, gone)
    this.#base = position
  }

  /** Empties the log. The next entry must follow `position`. */
  reset(position: Position): void {
    this.#base = position
    this.#entries = []
    this.#baseEnd = 0
    this.#ends = []
  }

  /**
   * The entries from..to, at most as many as fit in `bytesMax`, but at least one if the range is
   * not empty.
   */
  slice(from: Index, to: Index, bytesMax: number): readonly Entry[] {
    const start = from - this.#base.index - 1
    assert(start >= 0, `entry ${from} is compacted away`)
    const stop = Math.min(to - this.#base.index, this.#entries.length)
    let end = start
    for (let bytes = 0; end < stop; end += 1) {
      bytes += entryBytes(requirePresent(this.#entries[end], 'the slice is inside the log'))
      if (bytes > bytesMax && end > start) break
    }
    return this.#entries.slice(start, end)
  }

  /**
   * The last position in memory at or before `index` whose term is <= `term`, or the base if there
   * is none. There, two logs that conflict at `index` may agree again, so a leader can skip a whole
   * term per round (Raft paper 5.3, end). Terms never decrease along the log, so the search is
   * binary.
   */
  lastPositionUpToTerm(index: Index, term: Term): Position {
    let low = this.#base.index
    let high = Math.min(index, this.lastIndex)
    if (high <= low || this.#base.term > term) return this.#base
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((this.termAt(middle) ?? 0) <= term) low = middle
      else high = middle - 1
    }
    return { term: this.termAt(low) ?? 0, index: low }
  }
}
