import { assert } from '../../lib/assert.ts'
import type { DigestLanes } from './digest.ts'

/** A request whose outcome is stored. */
export interface DeduplicationRecord {
  readonly atMs: number
  readonly index: number
  /** The outcome of the request, serialized. */
  readonly outcome: string
  readonly lanes: DigestLanes
}

/**
 * Stored requests (for deduplication) by key, in insertion order; the oldest is dropped first.
 */
export class DeduplicationRecords {
  #records = new Map<string, DeduplicationRecord>()
  /**
   * All calls share one iterator: a new iterator would first pass over all entries that were
   * removed since the map was last compacted.
   */
  #order = this.#records.entries()
  #oldest: readonly [key: string, record: DeduplicationRecord] | null = null

  get size(): number {
    return this.#records.size
  }

  get(key: string): DeduplicationRecord | undefined {
    return this.#records.get(key)
  }

  /** The record that was inserted first. */
  oldest(): readonly [key: string, record: DeduplicationRecord] | null {
    if (this.#records.size === 0 || this.#oldest !== null) return this.#oldest
    let next = this.#order.next()
    if (next.done === true) {
      this.#order = this.#records.entries()
      next = this.#order.next()
    }
    this.#oldest = next.value ?? null
    return this.#oldest
  }

  /** Inserts a record after all others; its key must be new. */
  add(key: string, record: DeduplicationRecord): void {
    assert(!this.#records.has(key), 'a request is remembered once')
    this.#records.set(key, record)
  }

  forgetOldest(): void {
    const oldest = this.oldest()
    assert(oldest !== null, 'there is one to forget')
    this.#records.delete(oldest[0])
    this.#oldest = null
  }

  /** Sorts the records into log order after they were added in any order. */
  sortByIndex(): void {
    this.#records = new Map([...this.#records].sort(([, a], [, b]) => a.index - b.index))
    this.#order = this.#records.entries()
    this.#oldest = null
  }

  /**
   * The hash lanes (32-bit parts of a SHA-256) of all records. Records must not be added or removed
   * during the iteration.
   */
  *allLanes(): Generator<DigestLanes> {
    for (const { lanes } of this.#records.values()) yield lanes
  }
}
