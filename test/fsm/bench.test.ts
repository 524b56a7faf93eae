import { expect, test } from 'vitest'
import { benchApply } from '../../bench/apply.ts'

test('the apply bench runs, and applies the same state each time', () => {
  const { entries, entitiesDigest } = benchApply(200)
  expect(entries).toBe(200)
  expect(benchApply(200).entitiesDigest).toBe(entitiesDigest)
  expect(benchApply(201).entitiesDigest).not.toBe(entitiesDigest)
})
