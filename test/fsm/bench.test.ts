import { expect, test } from 'vitest'
import { benchAccess } from '../../bench/access.ts'
import { benchApply } from '../../bench/apply.ts'
import { benchQuery } from '../../bench/query.ts'

test('the apply benchmark runs, and produces the same state each time it runs', () => {
  const { entries, entitiesDigest } = benchApply(200)
  expect(entries).toBe(200)
  expect(benchApply(200).entitiesDigest).toBe(entitiesDigest)
  expect(benchApply(201).entitiesDigest).not.toBe(entitiesDigest)
})

test('the query benchmark runs, and each of its filters matches some rows but not all', () => {
  for (const { title, totalCount } of benchQuery(10_000, 2)) {
    expect(totalCount, title).toBeGreaterThan(0)
    if (!title.includes('no filter')) expect(totalCount, title).toBeLessThan(10_000)
  }
})

test('the access benchmark runs at a small size', () => {
  const size = { identities: 200, active: 50, services: 100, policies: 40, edgeRouters: 5 }
  const figures = benchAccess(size, 20)
  expect(figures.classes).toBeGreaterThan(10)
  expect(figures.viewIds).toBeGreaterThan(0)
  expect(figures.serviceChangeP50Ms).toBeGreaterThan(0)
})
