import { expect, test } from 'vitest'

import type { AuditDetail } from '../../src/console/client/served-types.ts'
import { groupRuns } from '../../src/console/pages/activity/entry-runs.ts'

// Goal: many similar changes do not hide the others in the list of changes.

const entry = (index: number, actor: string, action: string, at = '2026-11-01T10:00:30.000Z') =>
  ({ index, action, at, outcome: 'done', actor: { id: actor, name: actor } }) as AuditDetail

const sizes = (rows: readonly AuditDetail[]) => groupRuns(rows).map(({ entries }) => entries.length)

test('five or more changes of an actor with the same action in a minute are one run', () => {
  const creations = [9, 8, 7, 6, 5].map((index) => entry(index, 'ada', 'create'))
  expect(sizes([entry(10, 'ada', 'delete'), ...creations, entry(4, 'bob', 'create')])).toEqual([
    1, 5, 1,
  ])
})

test('fewer than five changes, or changes in different minutes, stay separate', () => {
  const four = [4, 3, 2, 1].map((index) => entry(index, 'ada', 'create'))
  expect(sizes(four)).toEqual([1, 1, 1, 1])
  const later = [9, 8].map((index) => entry(index, 'ada', 'create', '2026-11-01T10:01:00.000Z'))
  expect(sizes([...later, ...four])).toEqual([1, 1, 1, 1, 1, 1])
})

test('records that enrollments create belong to the run of another actor’s creations in the same minute', () => {
  const rows = [6, 5, 4, 3, 2, 1].map((index) =>
    entry(index, index % 2 === 0 ? `enrollment:${index}` : 'ada', 'create'),
  )
  expect(sizes(rows)).toEqual([6])
  expect(
    sizes([entry(7, 'enrollment:7', 'create'), entry(6, 'ada', 'delete'), ...rows.slice(1)]),
  ).toEqual([1, 1, 5])
})
