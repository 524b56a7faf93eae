import { expect, test } from 'vitest'

import {
  countSelected,
  roleListIn,
  selectsRecord,
} from '../../src/console/pages/records/role-selection.ts'
import { matchesRoles } from '../../src/fsm/records/roles.ts'

// Goal: the console counts the records of a policy as the controllers select them.

const rows = [
  { id: 'a', roleAttributes: ['staff', 'sales'] },
  { id: 'b', roleAttributes: ['staff'] },
  { id: 'c', roleAttributes: null },
  { id: 'd', roleAttributes: ['hosts'] },
]
const roleLists = [
  [],
  ['#all'],
  ['@a'],
  ['#staff'],
  ['#staff', '#sales'],
  ['#staff', '#hosts', '@c'],
  ['@c', '#none'],
]

test.each(['AnyOf', 'AllOf'])(
  'in the console, a list of roles with the semantic %s selects the same records as on a controller',
  (semantic) => {
    for (const roles of roleLists) {
      const selected = rows.filter((row) => selectsRecord({ roles, semantic }, row))
      const entities = rows.filter((row) => matchesRoles(row as never, roles, semantic))
      expect(selected, roles.join(' ')).toEqual(entities)
    }
  },
)

test('the number of records that a policy selects is computed without loading records that have none of its role attributes', () => {
  const candidates = { rows: rows.filter(({ id }) => id !== 'c'), totalCount: 4 }
  const count = (roles: readonly string[], semantic = 'AnyOf') =>
    countSelected({ roles, semantic }, candidates)
  expect(count(['#all'])).toBe(4)
  expect(count(['#staff'])).toBe(2)
  expect(count(['#staff', '#sales'], 'AllOf')).toBe(1)
  expect(count(['#hosts', '@c', '@d'])).toBe(2)
  expect(count([])).toBe(0)
})

test('if a response does not contain all records with the role attributes of a policy, the number of records that these attributes select is unknown', () => {
  const candidates = { rows: null, totalCount: 900 }
  const count = (roles: readonly string[]) =>
    countSelected({ roles, semantic: 'AnyOf' }, candidates)
  expect([count(['#staff']), count(['@a', '@b']), count(['#all'])]).toEqual([undefined, 2, 900])
})

test('a policy without a list of roles selects nothing', () => {
  const list = roleListIn({ id: 'p', semantic: 'AnyOf', identityRoles: null }, 'identityRoles')
  expect(countSelected(list, { rows, totalCount: 4 })).toBe(0)
})
