/**
 * Links from a member of a linked list to its neighbors, stored in the member itself; null at the
 * ends and outside of a list.
 */
export interface ListLinks<T> {
  before: T | null
  after: T | null
}

/**
 * A linked list in the order of appending. It is used instead of a Map: a Map that grows allocates
 * new tables, and an old table in the garbage collector's old generation keeps later tables and all
 * their members in memory until a full collection.
 */
export class LinkedList<T extends ListLinks<T>> implements Iterable<T> {
  #first: T | null = null
  #last: T | null = null

  get isEmpty(): boolean {
    return this.#first === null
  }

  /**
   * Adds a member at the end.
   * @param member must not be in a list.
   */
  append(member: T): void {
    member.before = this.#last
    if (this.#last === null) this.#first = member
    else this.#last.after = member
    this.#last = member
  }

  /**
   * Removes a member.
   * @returns false when the member was already removed.
   */
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

  /** During an iteration, the caller may remove the member that the iterator yielded last. */
  *[Symbol.iterator](): Iterator<T> {
    for (let member = this.#first; member !== null;) {
      const { after } = member
      yield member
      member = after
    }
  }
}
