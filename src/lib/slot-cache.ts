/**
 * A cache of recent values by number. Numbers that are equal modulo the number of slots share a
 * slot, which contains the value that was set last. A read may therefore return the value of
 * another number, so each value must contain its own number for the caller to compare.
 */
export class SlotCache<T> {
  readonly #values: (T | undefined)[]
  readonly #mask: number

  /** @param places number of slots, a power of two. */
  constructor(places: number) {
    this.#values = Array.from({ length: places }, () => undefined)
    this.#mask = places - 1
  }

  /** @returns the value set last for this number, or for another number of the same slot. */
  get(number: number): T | undefined {
    return this.#values[number & this.#mask]
  }

  set(number: number, value: T): void {
    this.#values[number & this.#mask] = value
  }
}
