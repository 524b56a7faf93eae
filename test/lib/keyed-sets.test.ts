import { expect, test } from 'vitest'

import { addToSet, removeFromSet } from '../../src/lib/keyed-sets.ts'

test('a key exists in the map of sets while its set has a value', () => {
  const sets = new Map<string, Set<number>>()
  addToSet(sets, 'a', 1)
  addToSet(sets, 'a', 2)
  addToSet(sets, 'a', 2)
  addToSet(sets, 'b', 1)
  expect(Object.fromEntries(sets)).toEqual({ a: new Set([1, 2]), b: new Set([1]) })
  expect([
    removeFromSet(sets, 'a', 3),
    removeFromSet(sets, 'c', 1),
    removeFromSet(sets, 'a', 1),
    removeFromSet(sets, 'b', 1),
  ]).toEqual([false, false, true, true])
  expect(Object.fromEntries(sets)).toEqual({ a: new Set([2]) })
})
