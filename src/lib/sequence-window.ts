const FIRST_PLACES = 64

/**
 * A ring buffer of values with consecutive numbers from 1, from the lowest remaining number to the
 * newest. It is used instead of a Map: a Map that grows allocates new tables, and an old table in
 * the garbage collector's old generation keeps later tables and all their values in memory until a
 * full collection.
 */
export class SequenceWindow<T> {
  #places = new Array<T | undefined>(FIRST_PLACES).fill(undefined)
  #lowest = 1
  #next = 1
  #size = 0

  get size(): number {
    return this.#size
  }

  /** The number that the next added value will get. */
  get next(): number {
    return this.#next
  }

  /** Lowest number that has a value; if there is none, the next number. */
  get lowest(): number {
    return this.#lowest
  }

  /**
   * Adds a value under the next number.
   * @returns that number.
   */
  add(value: T): number {
    if (this.#next - this.#lowest === this.#places.length) this.#grow()
    const number = this.#next
    this.#places[this.#placeOf(number)] = value
    this.#next += 1
    this.#size += 1
    return number
  }

  get(number: number): T | undefined {
    return number < this.#lowest || number >= this.#next
      ? undefined
      : this.#places[this.#placeOf(number)]
  }

  /**
   * Removes the value with this number.
   * @returns the removed value.
   */
  remove(number: number): T | undefined {
    const value = this.get(number)
    if (value === undefined) return undefined
    this.#places[this.#placeOf(number)] = undefined
    this.#size -= 1
    while (this.#lowest < this.#next && this.get(this.#lowest) === undefined) this.#lowest += 1
    return value
  }

  /** Values in numeric order; values that are removed during the iteration are skipped. */
  *values(): Generator<T> {
    for (let number = this.#lowest; number < this.#next; number += 1) {
      const value = this.get(number)
      if (value !== undefined) yield value
    }
  }

  #placeOf(number: number): number {
    return number & (this.#places.length - 1)
  }

  #grow(): void {
    const old = this.#places
    this.#places = new Array<T | undefined>(2 * old.length).fill(undefined)
    for (let number = this.#lowest; number < this.#next; number += 1) {
      this.#places[this.#placeOf(number)] = old[number & (old.length - 1)]
    }
  }
}
