import type { LiveRow, LiveTable } from '../ports/live-table.ts'

interface LiveRowsOptions<K, R> {
  readonly owner: string
  readonly rowsMax: number
  /** Returns the current public view of the row. */
  readonly viewOf: (kept: K) => R
  /** Called when `remove` has removed the row from the table. */
  readonly onRemoved: (kept: K, isImmediate: boolean) => void
}

/**
 * Rows of a table of live objects, such as circuits or channels, by ID. Each row also has internal
 * data of the table's owner.
 */
export class LiveRowTable<K, R extends LiveRow> implements LiveTable<R> {
  readonly #options: LiveRowsOptions<K, R>
  readonly #kept = new Map<string, K>()

  constructor(options: LiveRowsOptions<K, R>) {
    this.#options = options
  }

  get owner(): string {
    return this.#options.owner
  }

  get rowsMax(): number {
    return this.#options.rowsMax
  }

  get size(): number {
    return this.#kept.size
  }

  get isFull(): boolean {
    return this.#kept.size >= this.rowsMax
  }

  /** @returns false if the table is full. */
  set(id: string, kept: K): boolean {
    if (this.isFull && !this.#kept.has(id)) return false
    this.#kept.set(id, kept)
    return true
  }

  kept(id: string): K | undefined {
    return this.#kept.get(id)
  }

  allKept(): IterableIterator<K> {
    return this.#kept.values()
  }

  /** Removes the row and does not call `onRemoved`. */
  drop(id: string): K | undefined {
    const kept = this.#kept.get(id)
    this.#kept.delete(id)
    return kept
  }

  list(): readonly R[] {
    return Array.from(this.#kept.values(), this.#options.viewOf)
  }

  get(id: string): R | undefined {
    const kept = this.#kept.get(id)
    return kept === undefined ? undefined : this.#options.viewOf(kept)
  }

  remove(id: string, isImmediate = false): boolean {
    const kept = this.drop(id)
    if (kept === undefined) return false
    this.#options.onRemoved(kept, isImmediate)
    return true
  }
}
