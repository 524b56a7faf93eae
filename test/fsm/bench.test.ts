import { expect, test } from 'vitest'
import { benchApply } from '../../bench/apply.ts'
import { benchQuery } from '../../bench/query.ts'

test('the apply bench runs, and applies the same state each time', () => {
  const { entries, entitiesDigest } = benchApply(200)
  expect(entries).toBe(200)
  expect(benchApply(200).entitiesDigest).toBe(entitiesDigest)
  expect(benchApply(201).entitiesDigest).not.toBe(entitiesDigest)
})

test('the query bench runs, and each of its filters finds some but not all', () => {
  for (const { title, totalCount } of benchQuery(10_000, 2)) {
    expect(totalCount, title).toBeGreaterThan(0)
    if (!title.includes('no filter')) expect(totalCount, title).toBeLessThan(10_000)
  }
})
