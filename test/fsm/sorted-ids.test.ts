import { expect, test } from 'vitest'
import { SortedIds } from '../../src/fsm/sorted-ids.ts'
import { seededRandom } from '../../src/lib/random.ts'

test('a sorted set holds what a plain set holds, in order, through splits and gaps', () => {
  const random = seededRandom(3)
  const ids = new SortedIds()
  const twin = new Set<string>()
  for (let round = 0; round < 20_000; round += 1) {
    const id = `id${random.integer(0, 3000)}`
    const isAdd = random.next() < (round < 10_000 ? 0.7 : 0.3)
    if (isAdd) {
      expect(ids.add(id)).toBe(!twin.has(id))
      twin.add(id)
    } else {
      expect(ids.delete(id)).toBe(twin.delete(id))
    }
    expect(ids.has(id)).toBe(isAdd)
    expect(ids.size).toBe(twin.size)
  }
  const sorted = [...twin].sort()
  expect([...ids]).toEqual(sorted)
  for (let start = 0; start < sorted.length + 20; start += 37) {
    expect(ids.slice(start, 50)).toEqual(sorted.slice(start, start + 50))
  }
  for (const id of sorted) ids.delete(id)
  expect(ids.size).toBe(0)
  expect([...ids]).toEqual([])
  expect(ids.add('x')).toBe(true)
})
