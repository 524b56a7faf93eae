import { expect, test } from 'vitest'
import type { EntityRecord } from '../../src/lib/entity-record.ts'
import { StateReader } from '../../src/fsm/state-reader.ts'
import { matchesRoles, idsSelectedByRoles } from '../../src/fsm/records/roles.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { formedState, identity, policy, service, startMs } from './support/log.ts'
import type { ClusterState } from '../../src/fsm/access/cluster-state.ts'

const clock = { nowMs: () => startMs, monotonicMs: () => 0 }

function record(id: string, roleAttributes: readonly string[]): EntityRecord {
  return { id, createdAt: 0, updatedAt: 0, revision: 1, roleAttributes }
}

test.each([
  [['@a'], 'AllOf', [], true],
  [['@b'], 'AllOf', ['x'], false],
  [['#all'], 'AllOf', [], true],
  [['#x', '#y'], 'AllOf', ['x', 'y', 'z'], true],
  [['#x', '#y'], 'AllOf', ['x'], false],
  [['#x', '#y'], 'AnyOf', ['y'], true],
  [['#x', '#y'], 'AnyOf', ['z'], false],
  [['@b', '#x', '#y'], 'AllOf', ['x', 'y'], true],
  [['@b', '#x'], 'AllOf', [], false],
  [[], 'AllOf', ['x'], false],
  [[], 'AnyOf', ['x'], false],
] as const)(
  'the roles %j with the semantic %s match a record with the attributes %j: %s',
  (roles, semantic, own, expected) => {
    expect(matchesRoles(record('a', own), roles, semantic)).toBe(expected)
  },
)

test('a fabric-only service is not selected by any service policy', () => {
  const { log, state } = formedState()
  log.create('service', 's1', service('one', ['x']))
  log.create('service', 's2', service('two', ['x']))
  state.put('service', { ...state.get('service', 's2'), id: 's2', isFabricOnly: true })
  expect(state.get('service', 's2')).toBeUndefined()
  for (const roles of [['#all'], ['#x'], ['@s1', '@s2']]) {
    expect([...idsSelectedByRoles(state, 'service', [{ roles, semantic: 'AnyOf' }])]).toEqual([
      's1',
    ])
  }
  expect(new StateReader(state, clock).count('service')).toBe(1)
})

function ids(result: { readonly records: readonly EntityRecord[] } | null): string[] {
  return (result?.records ?? []).map(({ id }) => id)
}

/** Grants of policies, computed by checking every policy for every pair. */
function slowGrants(state: ClusterState, identityId: string): Map<string, Set<string>> {
  const caller = state.get('identity', identityId)
  const grants = new Map<string, Set<string>>()
  for (const { record: item } of state.table('servicePolicy').rows.values()) {
    const semantic = String(item['semantic'])
    if (caller === undefined || !matchesRoles(caller, item['identityRoles'] as string[], semantic))
      continue
    for (const { record: target } of state.table('service').rows.values()) {
      if (!matchesRoles(target, item['serviceRoles'] as string[], semantic)) continue
      const types = grants.get(target.id) ?? new Set()
      grants.set(target.id, types.add(String(item['type'])))
    }
  }
  return grants
}

test('the access that the indexes yield equals the access computed by applying each policy to each pair of identity and service', () => {
  const random = seededRandom(11)
  const { state, log } = formedState()
  const reader = new StateReader(state, clock)
  const attributes = (): string[] => ['a', 'b', 'c'].filter(() => random.next() < 0.4)
  const roles = (prefix: string): string[] => {
    if (random.next() < 0.1) return ['#all']
    const named = [`@${prefix}${random.integer(0, 14)}`].filter((role) => {
      const kind = prefix === 's' ? 'service' : 'identity'
      return random.next() < 0.5 && state.get(kind, role.slice(1)) !== undefined
    })
    return [...named, ...attributes().map((name) => `#${name}`)]
  }
  for (let round = 0; round < 400; round += 1) {
    const n = random.integer(0, 14)
    const semantic = random.next() < 0.5 ? 'AllOf' : 'AnyOf'
    const type = random.next() < 0.5 ? 'Dial' : 'Bind'
    const actions = [
      () => log.create('service', `s${n}`, service(`s${n}`, attributes())),
      () => log.create('identity', `i${n}`, identity(`i${n}`, attributes())),
      () =>
        log.create(
          'servicePolicy',
          `p${n}`,
          policy(`p${n}`, roles('i'), roles('s'), { semantic, type }),
        ),
      () => log.patch('servicePolicy', `p${n}`, { serviceRoles: roles('s') }),
      () => log.patch('identity', `i${n}`, { roleAttributes: attributes() }),
      () => log.patch('service', `s${n}`, { roleAttributes: attributes() }),
      () => log.delete('service', `s${n}`),
      () => log.delete('identity', `i${n}`),
      () => log.delete('servicePolicy', `p${n}`),
    ]
    actions[random.integer(0, round < 60 ? 2 : actions.length - 1)]?.()

    const who = `i${random.integer(0, 14)}`
    const slow = slowGrants(state, who)
    const granted = reader.accessibleServices(who, { limit: -1 })
    expect(ids(granted)).toEqual([...slow.keys()].sort())
    for (const id of ids(granted)) {
      expect(reader.permissions(who, id)).toEqual([...(slow.get(id) ?? [])].sort())
    }
    const target = `s${random.integer(0, 14)}`
    const both = [...state.table('identity').rows.keys()].filter((id) =>
      slowGrants(state, id).has(target),
    )
    expect(ids(reader.subList('service', target, 'identities', { limit: -1 }))).toEqual(both.sort())
  }
})

test('identities, services and service policies list their related records of the other two kinds; lists of services and identities can be limited to a policy type', () => {
  const { state, log } = formedState()
  const reader = new StateReader(state, clock)
  log.create('service', 's1', service('one', ['x']))
  log.create('service', 's2', service('two'))
  log.create('identity', 'i1', identity('ann', ['y']))
  log.create('servicePolicy', 'dial', policy('dial', ['#y'], ['#x']))
  log.create('servicePolicy', 'bind', policy('bind', ['@i1'], ['#all'], { type: 'Bind' }))
  expect(ids(reader.subList('identity', 'i1', 'services', {}))).toEqual(['s1', 's2'])
  expect(ids(reader.subList('identity', 'i1', 'services', { policyType: 'dial' }))).toEqual(['s1'])
  expect(ids(reader.subList('identity', 'i1', 'service-policies', {}))).toEqual(['bind', 'dial'])
  expect(ids(reader.subList('service', 's2', 'service-policies', {}))).toEqual(['bind'])
  expect(ids(reader.subList('service', 's1', 'identities', { policyType: 'bind' }))).toEqual(['i1'])
  expect(ids(reader.subList('servicePolicy', 'bind', 'services', {}))).toEqual(['s1', 's2'])
  expect(ids(reader.subList('servicePolicy', 'dial', 'identities', {}))).toEqual(['i1'])
  expect(
    ids(reader.subList('servicePolicy', 'bind', 'services', { filter: 'name = "two"' })),
  ).toEqual(['s2'])
  expect(reader.subList('servicePolicy', 'nope', 'services', {})).toMatchObject({ totalCount: 0 })
  expect(reader.subList('identity', 'nope', 'services', {})).toBeNull()
  expect(() => reader.subList('identity', 'i1', 'services', { policyType: 'x' })).toThrow('invalid')
})

test('role lists show the current names of records', () => {
  const { state, log } = formedState()
  const reader = new StateReader(state, clock)
  log.create('service', 's1', service('one'))
  log.create('servicePolicy', 'p1', policy('p', ['#a', '@admin'], ['@s1']))
  log.patch('service', 's1', { name: 'renamed' })
  const stored = state.get('servicePolicy', 'p1')
  if (stored === undefined) throw new Error('no policy')
  expect(reader.detail('servicePolicy', stored, 'admin')).toMatchObject({
    identityRolesDisplay: [
      { role: '#a', name: '#a' },
      { role: '@admin', name: '@Default Admin' },
    ],
    serviceRolesDisplay: [{ role: '@s1', name: '@renamed' }],
    postureCheckRolesDisplay: [],
  })
})
