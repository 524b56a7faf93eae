import { assert } from '../../lib/assert.ts'
import type { Lanes } from './digest.ts'

/** One remembered request. */
export interface RequestRecord {
  readonly atMs: number
  readonly index: number
  /** Serialized outcome. */
  readonly outcome: string
  readonly lanes: Lanes
}

/** Remembered requests by key, in insertion order; the oldest is forgotten first. */
export class RequestRecords {
  #records = new Map<string, RequestRecord>()
  /**
   * One iterator for all calls: a new one would first pass over all removed entries since the map
   * was last compacted.
   */
  #order = this.#records.entries()
  #oldest: readonly [key: string, record: RequestRecord] | null = null

  get size(): number {
    return this.#records.size
  }

  get(key: string): RequestRecord | undefined {
    return this.#records.get(key)
  }

  /** The record that was added first. */
  oldest(): readonly [key: string, record: RequestRecord] | null {
    if (this.#records.size === 0 || this.#oldest !== null) return this.#oldest
    let next = this.#order.next()
    if (next.done === true) {
      this.#order = this.#records.entries()
      next = this.#order.next()
    }
    this.#oldest = next.value ?? null
    return this.#oldest
  }

  /** Adds a record after all others; its key must be new. */
  add(key: string, record: RequestRecord): void {
    assert(!this.#records.has(key), 'a request is remembered once')
    this.#records.set(key, record)
  }

  forgetOldest(): void {
    const oldest = this.oldest()
    assert(oldest !== null, 'there is one to forget')
    this.#records.delete(oldest[0])
    this.#oldest = null
  }

  /** Sorts records that were added in any order into log order. */
  sortByIndex(): void {
    this.#records = new Map([...this.#records].sort(([, a], [, b]) => a.index - b.index))
    this.#order = this.#records.entries()
    this.#oldest = null
  }

  /** Records must not be added or removed during the iteration. */
  *allLanes(): Generator<Lanes> {
    for (const { lanes } of this.#records.values()) yield lanes
  }
}
