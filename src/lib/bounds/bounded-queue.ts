/** A FIFO queue with a capacity: a full queue refuses `push` instead of growing without limit. */
export class BoundedQueue<T> {
  #items: T[] = []
  #head = 0
  readonly #capacity: number

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get length(): number {
    return this.#items.length - this.#head
  }

  /**
   * Adds an item at the end.
   * @returns false when the queue is full; the caller must handle the refusal.
   */
  push(item: T): boolean {
    if (this.length >= this.#capacity) return false
    this.#items.push(item)
    return true
  }

  /** The item that the next `shift` will return, without removing it. */
  peek(): T | undefined {
    return this.#items[this.#head]
  }

  shift(): T | undefined {
    if (this.#head >= this.#items.length) return undefined
    const item = this.#items[this.#head]
    this.#head += 1
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  drain(): T[] {
    const items = this.#items.slice(this.#head)
    this.#items = []
    this.#head = 0
    return items
  }
}
