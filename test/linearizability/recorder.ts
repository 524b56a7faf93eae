import type { Operation, Outcome, Request } from './history.ts'

/** An operation in progress; the caller reports its end once. */
export interface Pending {
  /** @param index log index in the response: that of the effect, not that of a repeated request. */
  ok(result?: Operation['result'], index?: number | null): void
  /** Reports that the operation certainly had no effect. */
  failed(): void
  /**
   * Reports that the client does not know the outcome. @param index log index of its effect, if
   * another source shows it.
   */
  unknown(index?: number | null): void
}

interface Options {
  /**
   * A clock that never runs backwards. Without a clock, the recorder counts its own events, which
   * is the exact order for one thread. If the clock stood still between a response and the next
   * request, the history would not show which of the two came first.
   */
  readonly now?: () => number
  /** Maximum number of operations; more are a mistake of the caller. */
  readonly operationsMax?: number
}

/**
 * Records the history of one run with any number of clients. An operation that has no end when the
 * history is read has an unknown outcome.
 */
export class Recorder {
  readonly #now: () => number
  readonly #operationsMax: number
  readonly #ended: Operation[] = []
  readonly #pending = new Map<object, Operation>()
  #events = 0

  constructor({ now, operationsMax = 1_000_000 }: Options = {}) {
    this.#now = now ?? (() => (this.#events += 1))
    this.#operationsMax = operationsMax
  }

  /**
   * Must be called before anything is sent; the end must be reported after the whole response has
   * arrived.
   */
  begin(request: Request): Pending {
    if (this.#ended.length + this.#pending.size >= this.#operationsMax) {
      throw new Error(`more than ${this.#operationsMax} operations in one history`)
    }
    const handle = {}
    const invokedAt = this.#now()
    const open = { outcome: 'unknown', result: null, returnedAt: Infinity, index: null } as const
    this.#pending.set(handle, { ...request, invokedAt, ...open })
    const end = (outcome: Outcome, result: Operation['result'], index: number | null): void => {
      const operation = this.#pending.get(handle)
      if (operation === undefined) throw new Error(`${request.kind} has ended before`)
      this.#pending.delete(handle)
      const returnedAt = outcome === 'unknown' ? Infinity : this.#now()
      this.#ended.push({ ...operation, outcome, result, returnedAt, index })
    }
    return {
      ok: (result = null, index = null) => end('ok', result, index),
      failed: () => end('failed', null, null),
      unknown: (index = null) => end('unknown', null, index),
    }
  }

  get size(): number {
    return this.#ended.length
  }

  /** All operations, sorted by the time of their call. */
  operations(): Operation[] {
    return [...this.#ended, ...this.#pending.values()].sort((a, b) => a.invokedAt - b.invokedAt)
  }
}
