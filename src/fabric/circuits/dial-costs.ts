import type { Clock } from '../../lib/clock.ts'
import { routerLimits } from '../limits.ts'

const { failingHostsMax } = routerLimits

const OPEN_CIRCUIT = 2
const FAILED_DIAL = 20
const SUCCESSFUL_DIAL = 2
/**
 * Minimum cost that is subtracted for each minute without a failed dial. From 20 minutes on, the
 * amount is higher: it is a power of two that doubles every five minutes.
 */
const FORGIVEN_MIN = 10
const DOUBLES_EVERY_MINUTES = 5
const MINUTE_MS = 60_000
/** Maximum cost that failed dials add to a terminator. */
const FAILURES_MAX = 65_535

interface Failures {
  cost: number
  failedMs: number
  /** Number of minutes since the last failure for which the cost has been reduced already. */
  forgivenMinutes: number
}

/**
 * Costs of terminators in addition to those in their records: for open circuits of this controller
 * and for failed dials.
 */
export class DialCosts {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #openAt: (terminatorId: string) => number
  /** Costs of failed dials by terminator ID; the terminator that failed last is at the end. */
  readonly #failures = new Map<string, Failures>()

  constructor(clock: Pick<Clock, 'monotonicMs'>, openAt: (terminatorId: string) => number) {
    this.#clock = clock
    this.#openAt = openAt
  }

  of(terminatorId: string): number {
    return OPEN_CIRCUIT * this.#openAt(terminatorId) + this.ofFailures(terminatorId)
  }

  ofFailures(terminatorId: string): number {
    return this.#settled(terminatorId)?.cost ?? 0
  }

  /** Terminators whose cost still includes failed dials. */
  failing(): readonly string[] {
    return [...this.#failures.keys()].filter((id) => this.ofFailures(id) > 0)
  }

  failed(terminatorId: string): void {
    const before = this.#settled(terminatorId)?.cost ?? 0
    this.#failures.delete(terminatorId)
    if (this.#failures.size >= failingHostsMax) {
      const [oldest] = this.#failures.keys()
      this.#failures.delete(oldest ?? '')
    }
    const cost = Math.min(before + FAILED_DIAL, FAILURES_MAX)
    this.#failures.set(terminatorId, {
      cost,
      failedMs: this.#clock.monotonicMs(),
      forgivenMinutes: 0,
    })
  }

  succeeded(terminatorId: string): void {
    this.#lower(terminatorId, this.#settled(terminatorId), SUCCESSFUL_DIAL)
  }

  #settled(terminatorId: string): Failures | undefined {
    const known = this.#failures.get(terminatorId)
    if (known === undefined) return undefined
    const minutes = Math.floor((this.#clock.monotonicMs() - known.failedMs) / MINUTE_MS)
    let forgiven = 0
    while (known.forgivenMinutes < minutes && forgiven < known.cost) {
      known.forgivenMinutes += 1
      const doubled = 2 ** Math.floor(known.forgivenMinutes / DOUBLES_EVERY_MINUTES)
      forgiven += Math.max(FORGIVEN_MIN, doubled)
    }
    return this.#lower(terminatorId, known, forgiven)
  }

  #lower(terminatorId: string, known: Failures | undefined, by: number): Failures | undefined {
    if (known === undefined) return undefined
    known.cost -= by
    if (known.cost > 0) return known
    this.#failures.delete(terminatorId)
    return undefined
  }
}
