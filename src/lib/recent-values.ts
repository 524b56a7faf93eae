/**
 * Values made lately, each by a number that it was made for. A number shares its place with those
 * that are the same modulo the count of places, and the last value of a place is kept: what is read
 * may have been made for another number, so a value says what it was made of.
 */
export class RecentValues<T> {
  readonly #values: (T | undefined)[]
  readonly #mask: number

  /** @param places a power of two. */
  constructor(places: number) {
    this.#values = Array.from({ length: places }, () => undefined)
    this.#mask = places - 1
  }

  /** @returns what was set last for this number, or for another one of the same place. */
  get(number: number): T | undefined {
    return this.#values[number & this.#mask]
  }

  set(number: number, value: T): void {
    this.#values[number & this.#mask] = value
  }
}
