import { expect, test } from 'vitest'

import { changedItems } from '../../src/console/pages/records/changed-items.ts'

// Goal: a comparison shows which items of a list a change adds and removes, and does not show the
// whole list twice.

test('the comparison of two lists contains only the removed and the added items', () => {
  const change = changedItems(['staff', 'sales'], ['staff', 'web'])
  expect(change).toEqual({ before: ['sales'], after: ['web'] })
})

test('the comparison of two lists has no new value if no item was added', () => {
  expect(changedItems(['staff', 'sales'], ['staff'])).toEqual({ before: ['sales'], after: null })
  expect(changedItems(undefined, ['staff'])).toEqual({ before: null, after: ['staff'] })
})

test('the comparison of two lists with the same items in another order shows both lists', () => {
  expect(changedItems(['a', 'b'], ['b', 'a'])).toEqual({ before: ['a', 'b'], after: ['b', 'a'] })
})

test('the comparison of two values that are not lists of texts shows both values', () => {
  expect(changedItems('old', 'new')).toEqual({ before: 'old', after: 'new' })
  expect(changedItems(undefined, 5)).toEqual({ before: '', after: 5 })
  expect(changedItems([1], [2])).toEqual({ before: [1], after: [2] })
})
