import { expect, test } from 'vitest'
import { type Random, seededRandom } from '../../src/lib/random.ts'
import { checkByIndex } from './by-index.ts'
import { checkBySearch } from './by-search.ts'
import { modelOf, rightHistory, type Subject, subjects } from './generate.ts'
import type { Operation, Scalar } from './history.ts'

// Makes correct histories incorrect; the change is certainly wrong, because no value is written
// twice. Both checkers must find each of them.

const shape = { operations: 120, processes: 6, keys: 1, failedPerMille: 60, unknownPerMille: 40 }
const SEEDS = 30

/** Returns an incorrect history, or null if this history has no suitable place. */
type Mutation = (operations: readonly Operation[], random: Random) => Operation[] | null

const mutations: readonly (readonly [string, readonly Subject[], Mutation])[] = [
  [
    'a read returns a value that was never written',
    subjects,
    (operations, random) =>
      changed(operations, pick(operations.filter(isRead), random), (read) =>
        Array.isArray(read.result) ? [...elements(read), -1] : -1,
      ),
  ],
  [
    'a read returns the value of a failed change',
    subjects,
    (operations, random) => {
      const failed = operations.filter(
        ({ outcome, kind }) => outcome === 'failed' && kind !== 'read',
      )
      const value = [pick(failed, random)?.argument ?? null].flat().at(-1) ?? null
      if (value === null) return null
      return changed(operations, pick(operations.filter(isRead), random), (read) =>
        Array.isArray(read.result) ? [...elements(read), value] : value,
      )
    },
  ],
  [
    'a change whose value was read is reported as failed',
    subjects,
    (operations, random) => {
      const seen = new Set(operations.filter(isRead).flatMap(({ result }) => result))
      const victim = pick(
        operations.filter((one) => tookEffect(one) && seen.has(valueOf(one))),
        random,
      )
      if (victim === null) return null
      return operations.map((one) =>
        one === victim ? { ...one, outcome: 'failed', result: null, index: null } : one,
      )
    },
  ],
  [
    'the last read returns a value that was replaced before',
    subjects,
    (operations, random) => {
      const old = operations.filter(
        (read) =>
          isRead(read) &&
          operations.some((one) => tookEffect(one) && one.invokedAt > read.returnedAt),
      )
      const read = pick(old, random)
      return read === null ? null : [...operations, { ...read, ...atTheEnd(operations) }]
    },
  ],
  [
    'an acknowledged element is missing',
    ['set', 'list'],
    (operations, random) => {
      const added = pick(operations.filter(tookEffect), random)
      if (added === null) return null
      const later = operations.filter((one) => isRead(one) && one.invokedAt > added.returnedAt)
      return changed(operations, pick(later, random), (read) =>
        elements(read).filter((element) => element !== added.argument),
      )
    },
  ],
  [
    'a read returns an element twice',
    ['set', 'list'],
    (operations, random) => {
      const reads = operations.filter((one) => isRead(one) && elements(one).length > 0)
      return changed(operations, pick(reads, random), (read) => [
        ...elements(read),
        elements(read)[0] ?? null,
      ])
    },
  ],
  [
    'one read returns two adjacent elements in another order than other reads',
    ['list'],
    (operations, random) => {
      const reads = operations.filter((one) => isRead(one) && elements(one).length > 1)
      if (reads.length < 2) return null
      return changed(operations, pick(reads, random), (read) => {
        const [first = null, second = null, ...others] = elements(read)
        return [second, first, ...others]
      })
    },
  ],
  [
    'two compare-and-sets replace the same value',
    ['register'],
    (operations, random) => {
      const first = pick(
        operations.filter((one) => one.kind === 'cas' && tookEffect(one)),
        random,
      )
      if (first === null) return null
      const [from] = first.argument as readonly [Scalar, Scalar]
      return [...operations, { ...first, argument: [from, -1], ...atTheEnd(operations) }]
    },
  ],
]

const isRead = ({ kind, outcome }: Operation): boolean => kind === 'read' && outcome === 'ok'

function tookEffect({ kind, outcome, result }: Operation): boolean {
  return outcome === 'ok' && kind !== 'read' && result !== false
}

function elements({ result }: Operation): readonly Scalar[] {
  return result as readonly Scalar[]
}

function valueOf({ argument }: Operation): Scalar {
  return [argument].flat().at(-1) ?? null
}

function pick<T>(from: readonly T[], random: Random): T | null {
  return from[random.integer(0, Math.max(0, from.length - 1))] ?? null
}

function changed(
  operations: readonly Operation[],
  victim: Operation | null,
  result: (victim: Operation) => Operation['result'],
): Operation[] | null {
  if (victim === null) return null
  return operations.map((one) => (one === victim ? { ...one, result: result(victim) } : one))
}

/**
 * Times after all operations that returned. The log index is one that only operations with an
 * unknown outcome could have.
 */
function atTheEnd(operations: readonly Operation[]): Partial<Operation> {
  const times = operations.map((one) =>
    one.outcome === 'unknown' ? one.invokedAt : one.returnedAt,
  )
  const invokedAt = Math.max(...times) + 1
  const index = Math.max(...operations.map((one) => one.index ?? 0)) + operations.length
  return { process: 'last', invokedAt, returnedAt: invokedAt + 1, index }
}

for (const [title, on, mutate] of mutations) {
  for (const subject of on) {
    test(`${subject}: both checkers reject a history in which ${title} (${SEEDS} seeds)`, () => {
      let occasions = 0
      for (let seed = 1; seed <= SEEDS; seed += 1) {
        const right = rightHistory(subject, shape, seed)
        const wrong = mutate(right, seededRandom(seed))
        if (wrong === null) continue
        occasions += 1
        const model = modelOf(subject)
        const bySearch = checkBySearch(wrong, model)
        expect([seed, bySearch.kind]).toEqual([seed, 'violation'])
        expect([seed, checkByIndex(wrong, model).kind]).toEqual([seed, 'violation'])
        if (bySearch.kind !== 'violation') continue
        // The counterexample is incorrect by itself, and it becomes so by its last result.
        const { operations, culprit } = bySearch
        expect([seed, checkBySearch(operations, model).kind]).toEqual([seed, 'violation'])
        const before = operations.filter((one) => one !== culprit)
        if (!model.changes(culprit)) {
          expect([seed, checkBySearch(before, model).kind]).toEqual([seed, 'linearizable'])
        }
      }
      expect(occasions).toBeGreaterThan(SEEDS / 2)
    })
  }
}

for (const subject of subjects) {
  test(`${subject}: the check by log index rejects a log with two changes in the wrong order (${SEEDS} seeds)`, () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const right = rightHistory(subject, shape, seed)
      const first = pick(right.filter(tookEffect), seededRandom(seed))
      const second = right.find(
        (one) => tookEffect(one) && one.invokedAt > (first?.returnedAt ?? 0),
      )
      if (first === null || second === undefined) continue
      const wrong = right.map((one) => {
        if (one === first) return { ...one, index: second.index }
        return one === second ? { ...one, index: first.index } : one
      })
      const verdict = checkByIndex(wrong, modelOf(subject))
      expect([seed, verdict.kind]).toEqual([seed, 'violation'])
    }
  })
}
