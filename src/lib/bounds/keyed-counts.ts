/** Counts per key; a key with count 0 is removed. */
export class KeyedCounts {
  readonly #counts = new Map<string, number>()

  /** Number of keys with a count above 0. */
  get size(): number {
    return this.#counts.size
  }

  of(key: string): number {
    return this.#counts.get(key) ?? 0
  }

  /**
   * Changes the count of a key.
   * @param amount negative to subtract.
   */
  add(key: string, amount: number): void {
    const count = this.of(key) + amount
    if (count > 0) this.#counts.set(key, count)
    else this.#counts.delete(key)
  }

  /** The key with the highest count; '' when there is none. */
  largest(): string {
    let largest = ''
    let most = 0
    for (const [key, count] of this.#counts) {
      if (count <= most) continue
      largest = key
      most = count
    }
    return largest
  }
}
