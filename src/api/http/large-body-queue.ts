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
  /** Timer that ends the wait; undefined after the time limit. */
  timer: NodeJS.Timeout | undefined
}

/**
 * Limits the memory for large bodies that are being read or processed. While a body is written to
 * the log, it is in memory several times, so only a few bodies are admitted at the same time. Other
 * bodies wait unread in their connections until memory is free.
 */
export class LargeBodyQueue {
  readonly #limits: LargeBodyLimits
  readonly #waiting: BoundedQueue<Waiting>
  #bytes = 0

  constructor(limits: LargeBodyLimits) {
    this.#limits = limits
    this.#waiting = new BoundedQueue(limits.largeBodiesWaitingMax)
  }

  /** Bytes that admitted bodies occupy at this time. */
  get bytes(): number {
    return this.#bytes
  }

  isLarge(bytes: number): boolean {
    return bytes > this.#limits.largeBodyBytes
  }

  /**
   * Resolves when this body is admitted, with a function that frees its bytes.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS when too many bodies wait, or the body is not
   * admitted in time.
   */
  take(bytes: number): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { bytes, resolve, timer: undefined }
      waiting.timer = setTimeout(() => {
        waiting.timer = undefined
        reject(tooMany())
        // All bodies wait for the same maximum time, so the body that timed out is the first in the
        // queue. `#admit` removes this body from the queue.
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
      // A body is admitted whenever no other body is, because a single body may be larger than the
      // limit for all bodies together.
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
