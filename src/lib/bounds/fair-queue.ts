import { FairShare } from './fair-share.ts'

/**
 * A queue of bounded length that callers share: each has a line of its own, and the lines are
 * served in turn, so that who puts much into it waits for it alone.
 */
export class FairQueue<T> {
  readonly #lines = new Map<string, T[]>()
  readonly #room: FairShare

  constructor(capacity: number) {
    this.#room = new FairShare(capacity)
  }

  /**
   * @param isNext whether it goes before all that waits in the caller's own line.
   * @returns false when there is no room, or none for this caller.
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
   * The first of the line whose turn it is.
   * @param isReady false: the caller has no turn now, and keeps its place.
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
