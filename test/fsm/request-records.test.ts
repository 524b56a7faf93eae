import { expect, test } from 'vitest'
import {
  type DeduplicationRecord,
  DeduplicationRecords,
} from '../../src/fsm/records/deduplication-records.ts'
import { seededRandom } from '../../src/lib/random.ts'

function record(index: number): DeduplicationRecord {
  const lanes = { a: index | 0, b: ~index, c: index * 3, d: -index | 0 }
  return { atMs: 1_800_000_000_000 + index, index, outcome: `o${index}`, lanes }
}

test('the records of request ids are returned unchanged from the store, and removed in order', () => {
  const random = seededRandom(7)
  const records = new DeduplicationRecords()
  const twin: (readonly [string, DeduplicationRecord])[] = []
  for (let n = 1; n <= 6000; n += 1) {
    const one = [`r/ann/${n}`, record(n)] as const
    records.add(...one)
    twin.push(one)
    // Sometimes removes all request IDs.
    const isEmptied = random.next() < 0.002
    while (isEmptied || random.next() < (n < 4000 ? 0.3 : 0.6)) {
      const oldest = twin.shift() ?? null
      expect(records.oldest()).toEqual(oldest)
      if (oldest === null) break
      records.forgetOldest()
      expect(records.get(oldest[0])).toBeUndefined()
    }
    const some = twin[random.integer(0, Math.max(0, twin.length - 1))]
    if (some !== undefined) expect(records.get(some[0])).toBe(some[1])
    expect(records.size).toBe(twin.length)
  }
  expect([...records.allLanes()]).toEqual(twin.map(([, { lanes }]) => lanes))
})

test('the records of request ids are in log order after sorting, in whatever order they were added', () => {
  const records = new DeduplicationRecords()
  const random = seededRandom(3)
  const order = Array.from({ length: 5000 }, (_, n) => n + 1)
  for (const n of order.toSorted(() => random.next() - 0.5)) records.add(`${n}`, record(n))
  records.sortByIndex()
  for (const n of order) {
    expect(records.oldest()?.[1].index).toBe(n)
    records.forgetOldest()
  }
  expect(records.oldest()).toBeNull()
})
