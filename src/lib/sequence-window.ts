const FIRST_PLACES = 64

/**
 * Values by numbers that count from 1, from the lowest that is left to the newest: a ring of
 * places. A Map in its place would leave its old table behind each time it is
 * made anew, and one such table that has grown old keeps the next one, with all values of that
 * time, until a collection of the whole heap.
 */
export class SequenceWindow<T> {
  #places = new Array<T | undefined>(FIRST_PLACES).fill(undefined)
  #lowest = 1
  #next = 1
  #size = 0

  get size(): number {
    return this.#size
  }

  /** The number that the next value gets. */
  get next(): number {
    return this.#next
  }

  /** The lowest number whose value is left; the next one where none is. */
  get lowest(): number {
    return this.#lowest
  }

  /** @returns the number of the value. */
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

  /** @returns the value that was there. */
  remove(number: number): T | undefined {
    const value = this.get(number)
    if (value === undefined) return undefined
    this.#places[this.#placeOf(number)] = undefined
    this.#size -= 1
    while (this.#lowest < this.#next && this.get(this.#lowest) === undefined) this.#lowest += 1
    return value
  }

  /** Values in the order of their numbers, without those that are removed meanwhile. */
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
