import { expect, test } from 'vitest'
import { checkByIndex } from './by-index.ts'
import { checkBySearch } from './by-search.ts'
import { isExplained } from './every-order.ts'
import { modelOf, rightHistory, type Subject, subjects } from './generate.ts'
import { seededRandom } from '../../src/lib/random.ts'
import type { Operation } from './history.ts'

const small = { operations: 7, processes: 3, keys: 1, failedPerMille: 80, unknownPerMille: 150 }
const large = { operations: 300, processes: 8, keys: 2, failedPerMille: 50, unknownPerMille: 40 }
const SMALL_SEEDS = 2000
const LARGE_SEEDS = 40

/**
 * Replaces the result or the times of one operation at random; the history may then be right or
 * wrong.
 */
function disturbed(subject: Subject, operations: readonly Operation[], seed: number): Operation[] {
  const random = seededRandom(seed)
  const victim = random.integer(0, operations.length - 1)
  const values = operations.flatMap(({ argument }) => argument).filter((value) => value !== null)
  return operations.map((operation, at) => {
    if (at !== victim) return operation
    const { kind, outcome, result, invokedAt, returnedAt } = operation
    const value = values[random.integer(0, values.length - 1)] ?? null
    const span = returnedAt - invokedAt
    const moved = random.next() * 20
    if (outcome !== 'ok' || random.next() < 0.3) {
      return { ...operation, invokedAt: moved, returnedAt: moved + span }
    }
    if (kind === 'cas') return { ...operation, result: result !== true }
    if (kind !== 'read') return { ...operation, outcome: 'failed' }
    if (subject === 'register') return { ...operation, result: value }
    const many = Array.isArray(result) ? (result as number[]) : []
    return { ...operation, result: random.next() < 0.5 ? [...many].reverse() : many.slice(0, -1) }
  })
}

function withoutIndexes(operations: readonly Operation[]): Operation[] {
  return operations.map((operation) => ({ ...operation, index: null }))
}

for (const subject of subjects) {
  test(`${subject}: both linearizability checkers give the same result as trying every order (${SMALL_SEEDS} small histories)`, () => {
    const counts = { right: 0, wrong: 0 }
    for (let seed = 1; seed <= SMALL_SEEDS; seed += 1) {
      const operations = disturbed(subject, rightHistory(subject, small, seed), seed)
      const kind = isExplained(subject, operations) ? 'linearizable' : 'violation'
      counts[kind === 'violation' ? 'wrong' : 'right'] += 1
      const model = modelOf(subject)
      const found = checkBySearch(operations, model)
      expect([seed, found.kind]).toEqual([seed, kind])
      expect([seed, checkByIndex(withoutIndexes(operations), model).kind]).toEqual([seed, kind])
      if (found.kind === 'violation') {
        expect([seed, isExplained(subject, found.operations)]).toEqual([seed, false])
      }
    }
    expect(counts.right).toBeGreaterThan(SMALL_SEEDS / 10)
    expect(counts.wrong).toBeGreaterThan(SMALL_SEEDS / 10)
  })

  test(`${subject}: even if some log indexes are missing, the check by log index accepts only linearizable histories`, () => {
    for (let seed = 1; seed <= SMALL_SEEDS; seed += 1) {
      const random = seededRandom(seed)
      const right = rightHistory(subject, small, seed)
      const sparse = (operations: readonly Operation[]): Operation[] =>
        operations.map((one) => (random.next() < 0.4 ? { ...one, index: null } : one))
      const model = modelOf(subject)
      expect([seed, checkByIndex(sparse(right), model).kind]).toEqual([seed, 'linearizable'])
      const operations = disturbed(subject, right, seed)
      const { kind } = checkByIndex(sparse(operations), model)
      if (kind === 'linearizable')
        expect([seed, isExplained(subject, operations)]).toEqual([seed, true])
    }
  })

  test(`${subject}: if the search finds an order that explains a history, the check by log index accepts a log in this order`, () => {
    for (let seed = 1; seed <= SMALL_SEEDS; seed += 1) {
      const operations = disturbed(subject, rightHistory(subject, small, seed), seed)
      const model = modelOf(subject)
      const found = checkBySearch(withoutIndexes(operations), model)
      if (found.kind !== 'linearizable') continue
      const order = [...found.orders.values()].flat()
      const logged = order.map((operation, at) => ({ ...operation, index: at + 1 }))
      expect([seed, checkByIndex(logged, model).kind]).toEqual([seed, 'linearizable'])
    }
  })

  test(`${subject}: both checkers accept histories that are linearizable (${LARGE_SEEDS} long histories)`, () => {
    for (let seed = 1; seed <= LARGE_SEEDS; seed += 1) {
      const operations = rightHistory(subject, large, seed)
      const model = modelOf(subject)
      expect([seed, checkBySearch(operations, model).kind]).toEqual([seed, 'linearizable'])
      expect([seed, checkByIndex(operations, model).kind]).toEqual([seed, 'linearizable'])
    }
  })
}
