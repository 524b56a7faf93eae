import { invalidFilterProblem, queryLimits } from './scanner.ts'

/**
 * Units of work after which a scan yields, so that other work can run: about a tenth of a
 * millisecond.
 */
const turnUnits = 2000

/**
 * Counts the cost of one response: the number of terms evaluated, plus the number of related
 * records visited, plus one for each 32 characters that a `contains` test searches.
 */
export class QueryCostCounter {
  readonly #max: number
  #left: number

  constructor(unitsMax: number = queryLimits.workMax) {
    this.#max = unitsMax
    this.#left = unitsMax
  }

  get spent(): number {
    return this.#max - this.#left
  }

  /**
   * Adds to the cost.
   * @throws {Problem} INVALID_FILTER once the cost exceeds its limit; the cost is the same on every
   * controller with the same state.
   */
  spend(units: number): void {
    this.#left -= units
    if (this.#left < 0) {
      throw invalidFilterProblem(
        'the filter costs too much on so many records: ask for less at once',
      )
    }
  }
}

/** Decides after which record a scan yields, so that other work can run. */
export class ScanPacer {
  readonly #work: QueryCostCounter
  readonly #recordsMax: number
  #records = 0
  #spent: number

  /**
   * A turn (the work between two yields) ends after a fixed number of tested terms, or after other
   * work with the same cost.
   */
  constructor(work: QueryCostCounter, termsCount: number) {
    this.#work = work
    this.#recordsMax = Math.max(1, Math.floor(turnUnits / Math.max(1, termsCount)))
    this.#spent = work.spent
  }

  /** Whether the turn is over; called before each record. */
  isOver(): boolean {
    this.#records += 1
    const { spent } = this.#work
    // @guard costly-texts--turns
    if (this.#records < this.#recordsMax && spent - this.#spent < turnUnits) return false
    this.#records = 0
    this.#spent = spent
    return true
  }
}
