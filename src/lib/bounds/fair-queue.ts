import { FairShare } from './fair-share.ts'

/**
 * A bounded queue that callers share. Each caller has its own line, and each `shift` serves the
 * next line (round robin), so a caller that queues many items delays only itself.
 */
export class FairQueue<T> {
  readonly #lines = new Map<string, T[]>()
  readonly #room: FairShare

  constructor(capacity: number) {
    this.#room = new FairShare(capacity)
  }

  /**
   * Adds an item to the caller's line.
   * @param isNext true: puts the item at the front of that line.
   * @returns false when the queue is full, or the caller has used its share.
   */
  push(caller: string, item: T, isNext = false): boolean {
    if (!this.#room.hasRoomFor(caller)) return false
    this.#room.take(caller)
    const line = this.#lines.get(caller)
    if (line === undefined) this.#lines.set(caller, [item])
    else if (isNext) line.unshift(item)
    else line.push(item)
    return true
  }

  /**
   * Removes and returns the first item of the next line.
   * @param isReady returns false for a caller that `shift` must skip; a skipped caller keeps its
   * position.
   */
  shift(isReady: (caller: string) => boolean = () => true): T | undefined {
    for (const [caller, line] of this.#lines) {
      if (!isReady(caller)) continue
      const item = line.shift()
      this.#lines.delete(caller)
      if (line.length > 0) this.#lines.set(caller, line)
      this.#room.giveBack(caller)
      return item
    }
    return undefined
  }

  drain(): T[] {
    const items: T[] = []
    for (let item = this.shift(); item !== undefined; item = this.shift()) items.push(item)
    return items
  }
}
