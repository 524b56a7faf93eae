import { expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { formedState, policy, service } from './support/log.ts'
import type { ClusterState } from '../../src/fsm/access/cluster-state.ts'

const { ENTITY_CREATE, ENTITY_DELETE, ENTITY_PATCH, ENTITY_REPLACE } = CommandKind

/** All data that a batch may have changed. */
function looks(state: ClusterState): unknown {
  return {
    entities: state.entitiesDigest(),
    services: [...state.table('service').ids],
    byName: ['one', 'two'].map((name) => state.table('service').indexes.owner('name', name)),
    byAttribute: [...state.table('service').indexes.ids('roleAttributes', 'blue')],
    roles: state.get('servicePolicy', 'p1')?.['serviceRoles'],
  }
}

test('a step of a batch reads the results of earlier steps, and the batch returns the id that its designated step wrote', () => {
  const { log, state } = formedState()
  const outcome = log.batch(
    [
      [ENTITY_CREATE, 'service', 's1', service('one')],
      [ENTITY_CREATE, 'servicePolicy', 'p1', policy('p', [], ['@s1'])],
      [ENTITY_PATCH, 'service', 's1', { roleAttributes: ['blue'] }],
      [ENTITY_REPLACE, 'servicePolicy', 'p1', policy('q', [], ['@s1'])],
    ],
    1,
  )
  expect(outcome).toEqual({ ok: true, id: 'p1' })
  expect(state.get('service', 's1')?.roleAttributes).toEqual(['blue'])
  expect(state.get('servicePolicy', 'p1')?.['name']).toBe('q')
})

test('a batch with a refused step reverts its earlier steps, including indexes, digests and removed references', () => {
  const { log, state } = formedState()
  log.create('service', 's1', { ...service('one'), roleAttributes: ['blue'] })
  log.create('servicePolicy', 'p1', policy('p', [], ['@s1']))
  state.takeDirty()
  const before = looks(state)
  const outcome = log.batch([
    [ENTITY_DELETE, 'service', 's1', {}],
    [ENTITY_CREATE, 'service', 's2', service('one')],
    [ENTITY_CREATE, 'service', 's3', service('two')],
    [ENTITY_CREATE, 'service', 's4', service('two')],
  ])
  expect(outcome).toMatchObject({ ok: false, fault: { field: 'name', value: 'two' } })
  expect(looks(state)).toEqual(before)
  const written = new Map(state.takeDirty().map(({ key, value }) => [key, value]))
  expect(written.get('e/service/s2')).toBeNull()
  expect(written.get('e/service/s1')).toContain('"one"')
})

test('a batch with too many steps is refused, and a batch with a step of an unknown kind stops the state machine', () => {
  const { log } = formedState()
  const one = [ENTITY_CREATE, 'service', 's', service('x')] as const
  expect(log.batch(Array.from({ length: 65 }, () => one))).toMatchObject({ ok: false })
  expect(() => log.batch([[99, 'service', 's', {}]])).toThrow('unknown here')
})
