import { invalidFilterProblem, queryLimits } from './scanner.ts'

/** Units of a scan between two pauses for other work: about a tenth of a millisecond. */
const turnUnits = 2000

/** Cost of one answer: the number of terms tested on records, plus the elements of linked sets. */
export class QueryWork {
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
   * @throws {Problem} INVALID_FILTER once the cost is too high, which is the same on every
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

/** Decides when a scan yields to other work. */
export class ScanPacer {
  readonly #work: QueryWork
  readonly #recordsMax: number
  #records = 0
  #spent: number

  /** A turn ends after a fixed number of tested terms, or after other work of the same cost. */
  constructor(work: QueryWork, termsCount: number) {
    this.#work = work
    this.#recordsMax = Math.max(1, Math.floor(turnUnits / Math.max(1, termsCount)))
    this.#spent = work.spent
  }

  /** Called before each record. */
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
