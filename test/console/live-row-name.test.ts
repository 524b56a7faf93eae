import { expect, test } from 'vitest'

import { liveRowName } from '../../src/console/pages/live/live-row-name.ts'

// Goal: a dialog that ends a session or circuit says whose it is.

const names = new Map([['id1', 'laptop-04']])
const service = { id: 's1', name: 'git' }
const path = {
  nodes: [
    { id: 'r1', name: 'router1' },
    { id: 'r2', name: '' },
  ],
}

test('a session or circuit is named by its identity, service and routers', () => {
  expect(liveRowName({ id: 'x', identity: { id: 'id2', name: 'Ada' } }, names)).toBe('Ada')
  expect(liveRowName({ id: 'x', identityId: 'id1', service }, names)).toBe('laptop-04 to git')
  expect(liveRowName({ id: 'x', clientId: 'id1', service, path }, names)).toBe(
    'laptop-04 to git over router1 and r2',
  )
})

test('a row without a known identity has no name', () => {
  expect(liveRowName({ id: 'x', clientId: 'id9', service, path }, names)).toBeNull()
})
