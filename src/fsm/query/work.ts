import { invalidFilter, queryLimits } from './scanner.ts'

/** What one answer may cost, in tests of a term on a record and in elements of linked sets. */
export class Work {
  #left: number

  constructor(unitsMax: number = queryLimits.workMax) {
    this.#left = unitsMax
  }

  /** @throws {Problem} INVALID_FILTER once it is too much: the same on every controller with the same state. */
  spend(units: number): void {
    this.#left -= units
    if (this.#left < 0) {
      throw invalidFilter('the filter costs too much on so many records: ask for less at once')
    }
  }
}
