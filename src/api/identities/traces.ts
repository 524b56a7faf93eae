import type { Clock } from '../../lib/clock.ts'

/** Identities traced at a time; the oldest trace ends for one more. */
export const tracesMax = 1000

export interface Trace {
  readonly traceId: string
  /** UTC ms. */
  readonly untilMs: number
}

/** Which identities this controller traces: in its memory alone, so a restart ends them all. */
export class Traces {
  readonly #clock: Clock
  readonly #byIdentity = new Map<string, Trace>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** null when it is not traced, or not any more. */
  of(identityId: string): Trace | null {
    const trace = this.#byIdentity.get(identityId)
    if (trace === undefined || trace.untilMs > this.#clock.nowMs()) return trace ?? null
    this.#byIdentity.delete(identityId)
    return null
  }

  begin(identityId: string, trace: Trace): void {
    this.#byIdentity.delete(identityId)
    const [oldest] = this.#byIdentity.keys()
    if (this.#byIdentity.size >= tracesMax && oldest !== undefined) this.#byIdentity.delete(oldest)
    this.#byIdentity.set(identityId, trace)
  }

  end(identityId: string): void {
    this.#byIdentity.delete(identityId)
  }
}
