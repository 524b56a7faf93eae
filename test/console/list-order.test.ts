import { expect, test } from 'vitest'

import { sortByName } from '../../src/console/app/name-order.ts'
import { groupCircuits } from '../../src/console/pages/live/circuit-groups.ts'
import { differingColumns } from '../../src/console/pages/live/live-columns.ts'
import {
  chosenOption,
  EVERY,
  isFiltered,
  listRequestQuery,
  type ListState,
} from '../../src/console/pages/records/filters.ts'
import { listFacets } from '../../src/console/pages/records/list-facets.ts'

// Goal: lists have an order and a first filter that operators can predict, and show no column that
// says nothing.

test('names with numbers are sorted by these numbers', () => {
  const names = ['router10', 'router9', 'Router1', 'admin']
  expect(sortByName(names, (name) => name)).toEqual(['admin', 'Router1', 'router9', 'router10'])
})

const circuit = (id: string, second: number, clientId = 'ada', hostId = 'host') => ({
  id,
  clientId,
  hostId,
  service: { id: 'wiki' },
  path: { nodes: [{ id: 'r1', name: 'router1' }] },
  createdAt: `2026-11-30T10:00:0${second}.000Z`,
})

test('circuits of one client to one service over one path are one group, the newest first', () => {
  const rows = [circuit('a', 1), circuit('b', 3, 'bob'), circuit('c', 2), circuit('d', 2)]
  const groups = groupCircuits(rows)
  expect(groups.map(({ rows: members }) => members.map(({ id }) => id))).toEqual([
    ['b'],
    ['c', 'd', 'a'],
  ])
  expect(groupCircuits(rows.toReversed())).toEqual(groups)
  expect(groupCircuits([circuit('a', 1), circuit('b', 1, 'ada', 'other')])).toHaveLength(2)
})

test('a column of a method, a type or an address is left out if all rows have the same value', () => {
  const columns = ['identity', 'method', 'ipAddress', 'type']
  const rows = [
    { id: 'a', identity: 'ada', method: 'cert', ipAddress: '10.0.0.1' },
    { id: 'b', identity: 'ada', method: 'updb', ipAddress: '10.0.0.1' },
  ]
  expect(differingColumns(rows, columns)).toEqual({
    shown: ['identity', 'method'],
    same: ['ipAddress', 'type'],
  })
  expect(differingColumns(rows.slice(0, 1), columns).shown).toEqual([
    'identity',
    'method',
    'ipAddress',
  ])
})

const rows = { limit: 10, offset: 0 }
const nothing: ListState = { typed: '', sort: '', isDescending: false, offset: 0, facets: {} }

test('the list of enrollments shows only tokens that have not expired, until the user asks for all', () => {
  const facets = listFacets({ path: 'enrollments' })
  const filterOf = (state: ListState) =>
    new URLSearchParams(listRequestQuery(state, [], rows, facets)).get('filter')
  expect(filterOf(nothing)).toMatch(/^expiresAt > datetime/)
  const [expiry] = facets
  expect(expiry === undefined ? '' : chosenOption(nothing, expiry)).toBe('open')
  const all = { ...nothing, facets: { expiry: EVERY } }
  expect(filterOf(all)).toBeNull()
  expect([isFiltered(nothing), isFiltered(all)]).toEqual([false, false])
  expect(filterOf({ ...nothing, facets: { expiry: 'over' } })).toMatch(/^expiresAt <= datetime/)
})

test('a list that is sorted by service is sorted by router within a service', () => {
  const query = new URLSearchParams(listRequestQuery({ ...nothing, sort: 'service' }, [], rows))
  expect(query.get('sort')).toBe('service asc, router asc')
})
