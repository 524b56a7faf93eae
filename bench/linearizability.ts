import { checkByIndex } from '../test/linearizability/by-index.ts'
import { checkBySearch } from '../test/linearizability/by-search.ts'
import { modelOf, rightHistory, type Subject, subjects } from '../test/linearizability/generate.ts'
import type { Operation } from '../test/linearizability/history.ts'

// Measures how many operations of a linearizable history the checkers process per second: the
// checker that searches, and the one that uses the order of the log.

export interface CheckerResult {
  readonly operations: number
  readonly searchedPerSecond: number
  readonly byIndexPerSecond: number
}

/**
 * @param unknownPerMille share of operations whose outcome is unknown to the client; the search
 * must try every position for them.
 */
export function benchHistory(
  subject: Subject,
  count: number,
  unknownPerMille: number,
): Operation[] {
  const keys = subject === 'register' ? 1 : Math.ceil(count / 500)
  const shape = { operations: count, processes: 8, keys, failedPerMille: 10, unknownPerMille }
  return rightHistory(subject, shape, 1)
}

export function benchCheckers(subject: Subject, operations: readonly Operation[]): CheckerResult {
  const perSecond = (check: typeof checkBySearch): number => {
    const started = performance.now()
    const { kind } = check(operations, modelOf(subject))
    if (kind !== 'linearizable') throw new Error(`a right history is ${kind}`)
    return Math.round(operations.length / ((performance.now() - started) / 1000))
  }
  return {
    operations: operations.length,
    searchedPerSecond: perSecond(checkBySearch),
    byIndexPerSecond: perSecond(checkByIndex),
  }
}

if (import.meta.main) {
  for (const unknownPerMille of [0, 2]) {
    for (const subject of subjects) {
      const history = benchHistory(subject, 10_000, unknownPerMille)
      benchCheckers(subject, history)
      const { operations, searchedPerSecond, byIndexPerSecond } = benchCheckers(subject, history)
      console.log(
        `${subject}: ${operations} operations, ${unknownPerMille / 10} % unknown: ` +
          `${searchedPerSecond}/s by search, ${byIndexPerSecond}/s by index`,
      )
    }
  }
}
