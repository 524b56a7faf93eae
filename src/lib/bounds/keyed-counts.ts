/** How many there are of each key that has any. */
export class KeyedCounts {
  readonly #counts = new Map<string, number>()

  /** Keys that have any. */
  get size(): number {
    return this.#counts.size
  }

  of(key: string): number {
    return this.#counts.get(key) ?? 0
  }

  /** @param amount negative: so many less. */
  add(key: string, amount: number): void {
    const count = this.of(key) + amount
    if (count > 0) this.#counts.set(key, count)
    else this.#counts.delete(key)
  }

  /** The key that has most; '' when none has any. */
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
