import { BoundedQueue } from '../../lib/bounds/bounded-queue.ts'
import { Problem } from '../../lib/problems.ts'

interface LargeBodyLimits {
  readonly largeBodyBytes: number
  readonly largeBodiesBytesMax: number
  readonly largeBodiesWaitingMax: number
  readonly largeBodyWaitMs: number
}

interface Waiting {
  readonly bytes: number
  readonly resolve: (giveBack: () => void) => void
  /** Timer of the wait; undefined after the wait timed out. */
  timer: NodeJS.Timeout | undefined
}

/**
 * Limits the memory for large bodies that are being read or processed. While a body is written to
 * the log, it is in memory several times, so only a few bodies are admitted at once. The others
 * stay unread in their connections until their turn.
 */
export class LargeBodyQueue {
  readonly #limits: LargeBodyLimits
  readonly #waiting: BoundedQueue<Waiting>
  #bytes = 0

  constructor(limits: LargeBodyLimits) {
    this.#limits = limits
    this.#waiting = new BoundedQueue(limits.largeBodiesWaitingMax)
  }

  /** Bytes that admitted bodies occupy now. */
  get bytes(): number {
    return this.#bytes
  }

  isLarge(bytes: number): boolean {
    return bytes > this.#limits.largeBodyBytes
  }

  /**
   * Resolves when it is this body's turn, with a function that frees the bytes.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS when too many bodies wait, or the turn does not come
   * in time.
   */
  take(bytes: number): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { bytes, resolve, timer: undefined }
      waiting.timer = setTimeout(() => {
        waiting.timer = undefined
        reject(tooMany())
        // All bodies wait equally long, so the body that timed out is the first in the queue. This
        // call removes it and frees its slot.
        this.#admit()
      }, this.#limits.largeBodyWaitMs)
      if (this.#waiting.push(waiting)) {
        this.#admit()
        return
      }
      clearTimeout(waiting.timer)
      reject(tooMany())
    })
  }

  #admit(): void {
    for (let next = this.#waiting.peek(); next !== undefined; next = this.#waiting.peek()) {
      const isOver = next.timer === undefined
      // A body is always admitted when no other body is admitted, because the limit for one body
      // may exceed the limit for all.
      const hasRoom =
        this.#bytes === 0 || this.#bytes + next.bytes <= this.#limits.largeBodiesBytesMax
      if (!isOver && !hasRoom) return
      this.#waiting.shift()
      if (isOver) continue
      clearTimeout(next.timer)
      this.#bytes += next.bytes
      next.resolve(this.#giveBackOnce(next.bytes))
    }
  }

  #giveBackOnce(bytes: number): () => void {
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      this.#bytes -= bytes
      this.#admit()
    }
  }
}

function tooMany(): Problem {
  return new Problem('SERVER_TOO_MANY_REQUESTS', { retryAfterSeconds: 1 })
}
