import { expect, test } from 'vitest'
import { parseQuery } from '../../src/fsm/query/parser.ts'
import { corpus, fuzz } from './query-fuzz.ts'

test('the collection of test filters is large, has no duplicates, and its valid filters can be parsed', () => {
  const files = corpus()
  const all = [...files.values()].flat()
  expect(all.length).toBeGreaterThan(150)
  expect(new Set(all).size).toBe(all.length)
  for (const filter of files.get('good.txt') ?? []) expect(() => parseQuery(filter)).not.toThrow()
  expect(all.some((filter) => filter.length >= 100_000)).toBe(true)
})

test('mutated test filters return a page or a filter error, within limited time and memory', () => {
  const { failure, filters, answered, refused } = fuzz(15_000, 31, () => undefined)
  expect(failure).toBe(null)
  expect(filters).toBe(15_000)
  expect(answered).toBeGreaterThan(500)
  expect([...refused.keys()].sort()).toEqual(['INVALID_FILTER', 'INVALID_SORT_IDENTIFIER'])
})
