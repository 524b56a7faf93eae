/**
 * A map layered over another map, which stays unchanged: the layer stores its writes and deletions
 * separately. Iteration yields the entries of the map below first, then the added entries in
 * insertion order.
 */
export class LayeredMap<K, V> extends Map<K, V> {
  readonly #below: ReadonlyMap<K, V>
  readonly #own = new Map<K, V>()
  readonly #gone = new Set<K>()
  /** Number of keys in `#own` that the map below does not contain. */
  #added = 0

  constructor(below: ReadonlyMap<K, V>) {
    super()
    this.#below = below
  }

  override get size(): number {
    return this.#below.size - this.#gone.size + this.#added
  }

  override get(key: K): V | undefined {
    if (this.#own.has(key)) return this.#own.get(key)
    return this.#gone.has(key) ? undefined : this.#below.get(key)
  }

  override has(key: K): boolean {
    return this.#own.has(key) || (!this.#gone.has(key) && this.#below.has(key))
  }

  override set(key: K, value: V): this {
    if (!this.#own.has(key) && !this.#below.has(key)) this.#added += 1
    this.#gone.delete(key)
    this.#own.set(key, value)
    return this
  }

  override delete(key: K): boolean {
    if (!this.has(key)) return false
    this.#own.delete(key)
    if (this.#below.has(key)) this.#gone.add(key)
    else this.#added -= 1
    return true
  }

  override clear(): void {
    for (const key of this.#below.keys()) this.#gone.add(key)
    this.#own.clear()
    this.#added = 0
  }

  override *entries(): MapIterator<[K, V]> {
    for (const [key, value] of this.#below) {
      if (this.#own.has(key)) yield [key, this.#own.get(key) as V]
      else if (!this.#gone.has(key)) yield [key, value]
    }
    for (const entry of this.#own) if (!this.#below.has(entry[0])) yield entry
  }

  override *keys(): MapIterator<K> {
    for (const [key] of this.entries()) yield key
  }

  override *values(): MapIterator<V> {
    for (const [, value] of this.entries()) yield value
  }

  override [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries()
  }

  override forEach(run: (value: V, key: K, map: Map<K, V>) => void): void {
    for (const [key, value] of this.entries()) run(value, key, this)
  }
}
