import { describe, expect, test } from 'vitest'
import type { KindName } from '../../src/entities/kind-records.ts'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import { formedState, identity, type LogWriter, service, startMs } from './support/log.ts'
import { writeRandomLog } from './support/random-log.ts'

const refusedWith = (code: string, field?: string): object => ({
  ok: false,
  code,
  ...(field === undefined ? {} : { fault: { field } }),
})

function erott(id: string, routerId: string): readonly [number, string, string, JsonObject] {
  const fields = {
    method: 'erott',
    edgeRouterId: routerId,
    token: `token of ${id}`,
    jwt: 'j.w.t',
    expiresAt: startMs + 60_000,
  }
  return [CommandKind.ENTITY_CREATE, 'enrollment', id, fields]
}

function routerConfig(log: LogWriter, id: string, type = 'router.link.v1'): void {
  expect(log.create('config', id, { name: id, configTypeId: type, data: {} }).ok).toBe(true)
}

describe('an edge router with isTunnelerEnabled', () => {
  test('has an identity with the same id and name, and a system policy between the router and the identity', () => {
    const { log, state } = formedState()
    expect(log.create('edgeRouter', 'r1', { name: 'gate', isTunnelerEnabled: true }).ok).toBe(true)
    expect(state.get('identity', 'r1')).toMatchObject({
      name: 'gate',
      typeId: 'Router',
      isAdmin: false,
      authPolicyId: 'default',
      createdAt: startMs,
    })
    expect(state.get('edgeRouterPolicy', 'r1')).toMatchObject({
      name: 'edge-router-r1-system',
      semantic: 'AnyOf',
      edgeRouterRoles: ['@r1'],
      identityRoles: ['@r1'],
      isSystem: true,
    })
  })

  test('renames its identity when it is renamed, and keeps the policies of the identity', () => {
    const { log, state } = formedState()
    log.create('edgeRouter', 'r1', { name: 'gate', isTunnelerEnabled: true })
    log.patch('identity', 'r1', { roleAttributes: ['hosts'], defaultHostingCost: 7 })
    for (const [kind, name] of [
      ['edgeRouter', 'door'],
      ['fabricRouter', 'window'],
    ] as const) {
      log.timeMs += 1000
      expect(log.patch(kind, 'r1', { name }).ok).toBe(true)
      expect(state.get('identity', 'r1')).toMatchObject({
        name,
        roleAttributes: ['hosts'],
        defaultHostingCost: 7,
        createdAt: startMs,
        updatedAt: log.timeMs,
      })
    }
  })

  test('removes the identity and the policy when tunneling is disabled, or when the router is deleted on any API', () => {
    const { log, state } = formedState()
    log.create('edgeRouterPolicy', 'p1', {
      name: 'p',
      semantic: 'AnyOf',
      identityRoles: ['#all'],
      edgeRouterRoles: [],
    })
    const turnedOff = (): unknown => log.patch('edgeRouter', 'r1', { isTunnelerEnabled: false })
    const replaced = (): unknown => log.replace('edgeRouter', 'r1', { name: 'gate' })
    const deleted = (kind: string) => () => log.delete(kind, 'r1')
    const ways = [turnedOff, replaced, ...['edgeRouter', 'router', 'fabricRouter'].map(deleted)]
    for (const way of ways) {
      log.create('edgeRouter', 'r1', { name: 'gate', isTunnelerEnabled: true })
      log.patch('edgeRouter', 'r1', { isTunnelerEnabled: true })
      log.patch('edgeRouterPolicy', 'p1', { identityRoles: ['@r1'] })
      expect(state.get('identity', 'r1')).toBeDefined()
      expect(way()).toMatchObject({ ok: true })
      expect(state.get('identity', 'r1')).toBeUndefined()
      expect(state.get('edgeRouterPolicy', 'r1')).toBeUndefined()
      expect(state.get('edgeRouterPolicy', 'p1')).toMatchObject({ identityRoles: [] })
    }
  })

  test('is refused if an identity already has its name, whether the router is created or renamed, or tunneling is enabled', () => {
    const { log, state } = formedState()
    log.create('identity', 'i1', identity('taken'))
    const refusal = {
      ...refusedWith('COULD_NOT_VALIDATE', 'name'),
      fault: { reason: `duplicate value 'taken' in unique index on identities store` },
    }
    expect(
      log.create('edgeRouter', 'r1', { name: 'taken', isTunnelerEnabled: true }),
    ).toMatchObject(refusal)
    expect(state.get('router', 'r1')).toBeUndefined()
    expect(log.create('edgeRouter', 'r2', { name: 'taken' }).ok).toBe(true)
    expect(log.patch('edgeRouter', 'r2', { isTunnelerEnabled: true })).toMatchObject(refusal)
    expect(log.patch('edgeRouter', 'r2', { name: 'free', isTunnelerEnabled: true }).ok).toBe(true)
    log.create('identity', 'i2', identity('other'))
    expect(log.patch('edgeRouter', 'r2', { name: 'other' })).toMatchObject({ ok: false })
    expect(log.patch('fabricRouter', 'r2', { name: 'other' })).toMatchObject({ ok: false })
    expect(state.get('identity', 'r2')).toMatchObject({ name: 'free' })
  })

  test('is refused if another policy has the name of its system policy', () => {
    const { log } = formedState()
    log.create('edgeRouterPolicy', 'p1', { name: 'edge-router-r1-system', semantic: 'AnyOf' })
    expect(log.create('edgeRouter', 'r1', { name: 'gate', isTunnelerEnabled: true })).toMatchObject(
      refusedWith('COULD_NOT_VALIDATE', 'isTunnelerEnabled'),
    )
  })

  test('is refused if another identity already has its id, and leaves that identity unchanged', () => {
    const { log, state } = formedState()
    log.create('identity', 'r1', identity('ann'))
    expect(log.create('edgeRouter', 'r1', { name: 'gate', isTunnelerEnabled: true })).toMatchObject(
      refusedWith('COULD_NOT_VALIDATE', 'isTunnelerEnabled'),
    )
    expect(log.create('edgeRouter', 'r1', { name: 'gate' }).ok).toBe(true)
    expect(log.delete('edgeRouter', 'r1').ok).toBe(true)
    expect(state.get('identity', 'r1')).toMatchObject({ name: 'ann' })
  })
})

describe('the identity of a tunneling router', () => {
  test('cannot be renamed separately, nor deleted while the router exists, but its other fields can change', () => {
    const { log, state } = formedState()
    log.create('edgeRouter', 'r1', { name: 'gate', isTunnelerEnabled: true })
    expect(log.patch('identity', 'r1', { name: 'own' })).toMatchObject({
      ...refusedWith('COULD_NOT_VALIDATE', 'name'),
      fault: { reason: 'may not change name of router identities' },
    })
    expect(log.delete('identity', 'r1')).toMatchObject(refusedWith('ENTITY_CAN_NOT_BE_DELETED'))
    expect(log.patch('identity', 'r1', { appData: { a: 1 }, tags: { b: 2 } }).ok).toBe(true)
    expect(state.get('identity', 'r1')).toMatchObject({ typeId: 'Router', appData: { a: 1 } })
  })

  test('has a system policy that cannot be changed or deleted', () => {
    const { log } = formedState()
    log.create('edgeRouter', 'r1', { name: 'gate', isTunnelerEnabled: true })
    expect(log.patch('edgeRouterPolicy', 'r1', { name: 'x' })).toMatchObject(
      refusedWith('ENTITY_CAN_NOT_BE_UPDATED'),
    )
    expect(log.delete('edgeRouterPolicy', 'r1')).toMatchObject(
      refusedWith('ENTITY_CAN_NOT_BE_DELETED'),
    )
  })
})

describe.each(['edgeRouter', 'router', 'transitRouter', 'fabricRouter'])(
  'the router configs of the kind %s',
  (kind) => {
    const body = (configs: readonly string[]): JsonObject => ({
      name: 'gate',
      cost: 0,
      noTraversal: false,
      configs,
    })

    test('must be of a type that targets routers, with at most one per type, and are removed from the router when they are deleted', () => {
      const { log, state } = formedState()
      routerConfig(log, 'c1')
      routerConfig(log, 'c2')
      log.create('config', 'c3', { name: 'c3', configTypeId: 'host.v2', data: { terminators: [] } })
      const fault = refusedWith('COULD_NOT_VALIDATE', 'configs')
      expect(log.create(kind, 'r1', body(['c3']))).toMatchObject(fault)
      expect(log.create(kind, 'r1', body(['c1', 'c2']))).toMatchObject(fault)
      expect(log.create(kind, 'r1', body(['nowhere']))).toMatchObject(refusedWith('NOT_FOUND'))
      expect(log.create(kind, 'r1', body(['c1'])).ok).toBe(true)
      expect(log.delete('config', 'c1').ok).toBe(true)
      expect(state.get('router', 'r1')).toMatchObject({ configs: [] })
    })
  },
)

describe('The re-enrollment of an enrolled edge router', () => {
  test('removes the certificate, keeps other properties and related records, and replaces an open enrollment token', () => {
    const { log, state } = formedState()
    log.batch([
      [CommandKind.ENTITY_CREATE, 'edgeRouter', 'r1', { name: 'gate', roleAttributes: ['eu'] }],
      erott('e1', 'r1'),
    ])
    log.create('service', 's1', service('web'))
    log.raw(CommandKind.ENTITY_CREATE, 'terminator', 't1', {
      serviceId: 's1',
      routerId: 'r1',
      address: 'tcp:host:80',
    })
    const enrolled = { isVerified: true, fingerprint: 'ab12', certPem: 'pem' }
    log.raw(CommandKind.ENTITY_PATCH, 'edgeRouter', 'r1', enrolled)
    const withdraw = { isVerified: false, fingerprint: null, certPem: null }
    for (const id of ['e2', 'e3']) {
      const steps = [
        [CommandKind.ENTITY_PATCH, 'edgeRouter', 'r1', withdraw] as const,
        erott(id, 'r1'),
      ]
      expect(log.batch(steps).ok).toBe(true)
      expect([...state.table('enrollment').ids]).toEqual([id])
    }
    expect(state.get('router', 'r1')).toMatchObject({ ...withdraw, name: 'gate' })
    expect(state.get('router', 'r1')).toMatchObject({ roleAttributes: ['eu'] })
    expect(state.get('terminator', 't1')).toBeDefined()
  })

  test('changes nothing for an unknown router', () => {
    const { log, state } = formedState()
    expect(
      log.batch([[CommandKind.ENTITY_PATCH, 'edgeRouter', 'r1', {}], erott('e1', 'r1')]),
    ).toMatchObject(refusedWith('NOT_FOUND'))
    expect(state.table('enrollment').rows.size).toBe(0)
  })
})

test('deleting an edge router deletes its terminators and enrollments', () => {
  const { log, state } = formedState()
  log.batch([[CommandKind.ENTITY_CREATE, 'edgeRouter', 'r1', { name: 'gate' }], erott('e1', 'r1')])
  log.create('service', 's1', service('web'))
  const hosted = { serviceId: 's1', routerId: 'r1', address: 'tcp:host:80' }
  log.raw(CommandKind.ENTITY_CREATE, 'terminator', 't1', hosted)
  expect(log.delete('edgeRouter', 'r1').ok).toBe(true)
  for (const kind of ['terminator', 'enrollment', 'router'] as const) {
    expect(state.table(kind).rows.size, kind).toBe(0)
  }
})

describe('a router that was not created through the transit router API', () => {
  test('cannot be changed through the transit router API, but can be deleted there', () => {
    const { log } = formedState()
    log.create('edgeRouter', 'edge', { name: 'edge' })
    log.create('fabricRouter', 'fabric', { name: 'fabric', cost: 1, noTraversal: true })
    const transit = { name: 'transit', isTransit: true }
    log.raw(CommandKind.ENTITY_CREATE, 'transitRouter', 'transit', transit)
    for (const kind of ['router', 'transitRouter']) {
      for (const id of ['edge', 'fabric']) {
        expect(log.patch(kind, id, { name: 'x' })).toMatchObject(
          refusedWith('CAN_NOT_UPDATE_ROUTER'),
        )
        expect(log.replace(kind, id, { name: 'x' })).toMatchObject({ ok: false })
      }
      expect(log.patch(kind, 'transit', { cost: 5 }).ok).toBe(true)
    }
    expect(log.delete('router', 'edge').ok).toBe(true)
    expect(log.delete('transitRouter', 'fabric').ok).toBe(true)
  })

  test('has a name that no other router of any kind may have', () => {
    const { log } = formedState()
    log.create('edgeRouter', 'r1', { name: 'gate' })
    for (const kind of ['router', 'transitRouter', 'fabricRouter', 'edgeRouter']) {
      const body = { name: 'gate', cost: 0, noTraversal: false }
      expect(log.create(kind, 'r2', body)).toMatchObject({
        ...refusedWith('COULD_NOT_VALIDATE', 'name'),
        fault: { reason: 'name must be unique' },
      })
    }
  })
})

test('a router created as fabricRouter cannot be selected by an edge router policy, and is not an edge router', () => {
  const { log, state } = formedState()
  log.create('fabricRouter', 'fabric', { name: 'fabric', cost: 1, noTraversal: true })
  expect(state.get('edgeRouter', 'fabric')).toBeUndefined()
  const roles = { name: 'p', semantic: 'AnyOf', edgeRouterRoles: ['@fabric'] }
  expect(log.create('edgeRouterPolicy', 'p1', roles)).toMatchObject(
    refusedWith('COULD_NOT_VALIDATE', 'edgeRouterRoles'),
  )
  expect(log.patch('edgeRouter', 'fabric', { name: 'x' })).toMatchObject(refusedWith('NOT_FOUND'))
})

describe('a PUT of an edge router', () => {
  test('keeps the enrolled certificate, and the fields that the API of the request does not have', () => {
    const { log, state } = formedState()
    log.create('edgeRouter', 'r1', { name: 'gate', roleAttributes: ['eu'], appData: { a: 1 } })
    const enrolled = { isVerified: true, fingerprint: 'ab12', certPem: 'pem' }
    log.raw(CommandKind.ENTITY_PATCH, 'edgeRouter', 'r1', enrolled)
    expect(log.replace('fabricRouter', 'r1', { name: 'gate', cost: 4, noTraversal: true }).ok).toBe(
      true,
    )
    expect(state.get('router', 'r1')).toMatchObject({
      ...enrolled,
      cost: 4,
      roleAttributes: ['eu'],
      appData: { a: 1 },
      isEdge: true,
    })
    expect(log.replace('edgeRouter', 'r1', { name: 'gate' }).ok).toBe(true)
    expect(state.get('router', 'r1')).toMatchObject({ ...enrolled, cost: 0, roleAttributes: [] })
  })
})

describe('after random commands', () => {
  test.each([1, 2, 3, 4])(
    'tunneling routers have their identities and policies, no record lacks a required reference, and no router has two tokens (%i)',
    (seed) => {
      const { log, state } = formedState()
      writeRandomLog(log, seed, 3000)
      const rows = (kind: KindName) => [...state.table(kind).rows.values()].map((row) => row.record)
      const tunneling = rows('router').filter((router) => router['isTunnelerEnabled'] === true)
      expect(tunneling.length).toBeGreaterThan(0)
      const owned = tunneling.map(({ id, name }) => ({ id, name })).sort(byId)
      const identities = rows('identity').filter(({ typeId }) => typeId === 'Router')
      expect(identities.map(({ id, name }) => ({ id, name })).sort(byId)).toEqual(owned)
      const policies = rows('edgeRouterPolicy').filter(({ isSystem }) => isSystem === true)
      expect(policies.map(({ id }) => id).sort()).toEqual(owned.map(({ id }) => id))
      for (const { serviceId, routerId } of rows('terminator')) {
        expect(state.get('service', String(serviceId))).toBeDefined()
        expect(state.get('router', String(routerId))).toBeDefined()
      }
      const enrollments = rows('enrollment')
      expect(enrollments.length).toBeGreaterThan(0)
      const subjects = enrollments.map(({ method, identityId, edgeRouterId }) => {
        const kind = edgeRouterId === '' ? 'identity' : 'edgeRouter'
        expect(state.get(kind, String(identityId) || String(edgeRouterId))).toBeDefined()
        return [method, identityId, edgeRouterId].join('/')
      })
      expect(new Set(subjects).size).toBe(subjects.length)
    },
  )
})

function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : 1
}
