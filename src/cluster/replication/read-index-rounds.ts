import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import type { Index } from '../../raft/types.ts'

interface Reader {
  readonly resolve: (index: Index) => void
  readonly reject: (problem: Problem) => void
  readonly deadlineMs: number
}

/** Maximum concurrent readers; further ones are refused. */
const READERS_MAX = 65_536

/**
 * Shares ReadIndex rounds: all reads requested in one turn of the event loop share a round that
 * starts after them. Later reads cannot use a round in progress, because it may miss writes that
 * completed after it began.
 */
export class ReadIndexRounds {
  readonly #clock: Clock
  readonly #timeoutMs: number
  readonly #ask: (id: number) => void
  readonly #rounds = new Map<number, Reader[]>()
  #waiting: Reader[] = []
  #readers = 0
  #nextRound = 1
  #isScheduled = false

  constructor(parts: {
    readonly clock: Clock
    readonly timeoutMs: number
    readonly ask: (id: number) => void
  }) {
    this.#clock = parts.clock
    this.#timeoutMs = parts.timeoutMs
    this.#ask = parts.ask
  }

  /**
   * Resolves with a read index. Rejects with CLUSTER_NO_LEADER when no leader confirms it in time,
   * and with SERVER_TOO_MANY_REQUESTS when too many reads wait.
   */
  async read(): Promise<Index> {
    if (this.#readers >= READERS_MAX) throw new Problem('SERVER_TOO_MANY_REQUESTS')
    return await new Promise<Index>((resolve, reject) => {
      const deadlineMs = this.#clock.monotonicMs() + this.#timeoutMs
      this.#readers += 1
      this.#waiting.push({ resolve, reject, deadlineMs })
      this.#schedule()
    })
  }

  /**
   * Called with the result of a round.
   * @param index null if no leader confirmed the round. Another round then follows, until the
   * readers' deadline.
   */
  answer(id: number, index: Index | null): void {
    const readers = this.#rounds.get(id)
    if (readers === undefined) return
    this.#rounds.delete(id)
    if (index === null) {
      this.#waiting.push(...readers)
      return
    }
    this.#readers -= readers.length
    for (const { resolve } of readers) resolve(index)
  }

  /**
   * Called when a leader was elected. Rounds sent to the previous leader may never get a response,
   * so they are repeated.
   */
  retry(): void {
    for (const readers of this.#rounds.values()) this.#waiting.push(...readers)
    this.#rounds.clear()
    this.#schedule()
  }

  /** Called periodically: rejects expired reads and repeats refused rounds. */
  sweep(): void {
    const nowMs = this.#clock.monotonicMs()
    this.#waiting = this.#unexpired(this.#waiting, nowMs)
    for (const [id, readers] of this.#rounds) {
      const rest = this.#unexpired(readers, nowMs)
      if (rest.length === 0) this.#rounds.delete(id)
      else this.#rounds.set(id, rest)
    }
    this.#schedule()
  }

  abandon(): void {
    const readers = [...this.#waiting, ...[...this.#rounds.values()].flat()]
    this.#waiting = []
    this.#rounds.clear()
    this.#readers = 0
    for (const { reject } of readers) reject(new Problem('CLUSTER_NO_LEADER'))
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      if (this.#waiting.length === 0) return
      const id = this.#nextRound
      this.#nextRound += 1
      this.#rounds.set(id, this.#waiting)
      this.#waiting = []
      this.#ask(id)
    })
  }

  #unexpired(readers: Reader[], nowMs: number): Reader[] {
    if (readers.every(({ deadlineMs }) => deadlineMs > nowMs)) return readers
    const rest: Reader[] = []
    for (const reader of readers) {
      if (reader.deadlineMs > nowMs) rest.push(reader)
      else {
        this.#readers -= 1
        reader.reject(new Problem('CLUSTER_NO_LEADER'))
      }
    }
    return rest
  }
}
