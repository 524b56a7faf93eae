import { BoundedQueue } from '../../../lib/bounds/bounded-queue.ts'
import { Problem } from '../../../lib/problems.ts'

interface LargeBodyLimits {
  readonly largeBodyBytes: number
  readonly largeBodiesBytesMax: number
  readonly largeBodiesWaitingMax: number
  readonly largeBodyWaitMs: number
}

interface Waiting {
  readonly bytes: number
  readonly resolve: (giveBack: () => void) => void
  /** Undefined after the wait timed out. */
  timer: NodeJS.Timeout | undefined
}

/**
 * Memory for large bodies that are being read or processed. A body on its way into the log is in
 * memory several times, so only a few are admitted at once; the others stay unread in their
 * connections until their turn.
 */
export class LargeBodies {
  readonly #limits: LargeBodyLimits
  readonly #waiting: BoundedQueue<Waiting>
  #bytes = 0

  constructor(limits: LargeBodyLimits) {
    this.#limits = limits
    this.#waiting = new BoundedQueue(limits.largeBodiesWaitingMax)
  }

  /** Bytes that bodies occupy now. */
  get bytes(): number {
    return this.#bytes
  }

  isLarge(bytes: number): boolean {
    return bytes > this.#limits.largeBodyBytes
  }

  /**
   * Resolves when it is this body's turn, with a function that frees the bytes.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS when too many wait, or its turn does not come in
   * time.
   */
  take(bytes: number): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { bytes, resolve, timer: undefined }
      waiting.timer = setTimeout(() => {
        waiting.timer = undefined
        reject(tooMany())
        // All wait equally long, so the first one has timed out, and its slot is free again.
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
      // A body that is alone is always admitted, because the limit of one body may exceed that of
      // all.
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
