/** Neighbours of a member, which carries them itself: null at the ends and outside of a list. */
export interface Neighbours<T> {
  before: T | null
  after: T | null
}

/**
 * Members in the order in which they were appended. A Map in its place would leave its old table
 * behind each time it is made anew, and one such table that has grown old keeps the next one, with
 * all members of that time, until a collection of the whole heap.
 */
export class LinkedList<T extends Neighbours<T>> implements Iterable<T> {
  #first: T | null = null
  #last: T | null = null

  get isEmpty(): boolean {
    return this.#first === null
  }

  /** @param member of no list. */
  append(member: T): void {
    member.before = this.#last
    if (this.#last === null) this.#first = member
    else this.#last.after = member
    this.#last = member
  }

  /** @returns false: it was removed before. */
  remove(member: T): boolean {
    const { before, after } = member
    if (before === null && this.#first !== member) return false
    if (before === null) this.#first = after
    else before.after = after
    if (after === null) this.#last = before
    else after.before = before
    member.before = null
    member.after = null
    return true
  }

  /** The member that was given last may be removed meanwhile. */
  *[Symbol.iterator](): Iterator<T> {
    for (let member = this.#first; member !== null;) {
      const { after } = member
      yield member
      member = after
    }
  }
}
