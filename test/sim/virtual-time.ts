interface Due {
  readonly atMs: number
  readonly sequence: number
  readonly task: () => void
}

/**
 * A clock that is a counter. Tasks run in the order of their time; tasks with the same time run in
 * the order of their creation.
 */
export class VirtualTime {
  nowMs = 0
  #sequence = 0
  /** Binary heap, with the earliest task first. */
  #heap: Due[] = []

  after(delayMs: number, task: () => void): void {
    this.#sequence += 1
    this.#push({ atMs: this.nowMs + delayMs, sequence: this.#sequence, task })
  }

  /** @returns false when no task is due before `untilMs`; the time is then `untilMs`. */
  runNext(untilMs: number): boolean {
    const next = this.#heap[0]
    if (next === undefined || next.atMs > untilMs) {
      this.nowMs = untilMs
      return false
    }
    this.#pop()
    this.nowMs = next.atMs
    next.task()
    return true
  }

  #push(due: Due): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(due)
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent]
      if (above === undefined || isSooner(above, due)) break
      heap[at] = above
      at = parent
    }
    heap[at] = due
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let at = 0
    for (;;) {
      const left = heap[2 * at + 1]
      const right = heap[2 * at + 2]
      if (left === undefined) break
      const isRight = right !== undefined && isSooner(right, left)
      const child = isRight ? right : left
      if (isSooner(last, child)) break
      heap[at] = child
      at = 2 * at + (isRight ? 2 : 1)
    }
    heap[at] = last
  }
}

function isSooner(a: Due, b: Due): boolean {
  return a.atMs !== b.atMs ? a.atMs < b.atMs : a.sequence < b.sequence
}
