import type { Operation, Outcome, Request } from './history.ts'

/** An operation under way; ended once. */
export interface Pending {
  /** @param index log index in the answer: that of the effect itself, not of a repetition. */
  ok(result?: Operation['result'], index?: number | null): void
  /** It certainly took no effect. */
  failed(): void
  /**
   * The client does not know the outcome. @param index if another source shows that it took effect,
   * and where.
   */
  unknown(index?: number | null): void
}

interface Options {
  /**
   * Any clock that never runs backwards. Without one the recorder counts its own events, which is
   * the exact order of one thread; a clock that stands still between an answer and the next request
   * hides that one came before the other.
   */
  readonly now?: () => number
  /** More than so many operations are a mistake of the caller. */
  readonly operationsMax?: number
}

/**
 * Records the history of one run, from any number of clients. Operations without an end when it is
 * read are unknown.
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

  /** To be called before anything is sent; the end, after the whole answer has come. */
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

  /** By the time of invocation. */
  operations(): Operation[] {
    return [...this.#ended, ...this.#pending.values()].sort((a, b) => a.invokedAt - b.invokedAt)
  }
}
