import { expect, test } from 'vitest'
import { SortedIds } from '../../src/fsm/records/sorted-ids.ts'
import { seededRandom } from '../../src/lib/random.ts'

test('the sorted set of ids has the content of a plain set after many random additions and removals, and returns it in order', () => {
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
  for (const id of [...sorted.slice(0, 100), 'id', 'id2x', 'z', '']) {
    expect(ids.rank(id)).toBe(sorted.filter((other) => other < id).length)
  }
  for (const id of sorted) ids.delete(id)
  expect(ids.size).toBe(0)
  expect([...ids]).toEqual([])
  expect(ids.add('x')).toBe(true)
})

test('the sorted set of ids sorts ids by their UTF-8 bytes', () => {
  const random = seededRandom(5)
  const letters = ['a', 'z', 'é', '\uD7FF', '\uE000', '\uFF5E', '\u{10000}', '😀', '\u{10FFFF}']
  const ids = new SortedIds()
  for (let i = 0; i < 2000; i += 1) {
    const length = random.integer(0, 4)
    ids.add(Array.from({ length }, () => letters[random.integer(0, letters.length - 1)]).join(''))
  }
  const sorted = [...ids]
  const bytes = sorted.map((id) => Buffer.from(id)).sort((a, b) => Buffer.compare(a, b))
  expect(sorted).toEqual(bytes.map((one) => one.toString()))
})
