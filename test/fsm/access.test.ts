import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { CommandKind, ServiceSessionCreateSchema } from '../../proto/gen/command_pb.ts'
import { StateReader } from '../../src/fsm/state-reader.ts'
import { runCampaign } from './access-campaign.ts'
import { formedState, identity, policy, service, startMs } from './support/log.ts'

test('on random networks, the access indexes and a full evaluation of the records agree after each log entry', () => {
  const figures = runCampaign(12, 900_001)
  // A campaign with few changes would prove little, so this checks their number.
  expect(figures.moved).toBeGreaterThan(100)
  expect(figures.unmoved).toBeGreaterThan(1000)
  expect(figures.refused).toBeGreaterThan(100)
  expect(figures.sessionsOpened).toBeGreaterThan(2)
  expect(figures.sessionsEnded).toBeGreaterThan(0)
})

const clock = { nowMs: () => startMs, monotonicMs: () => 0 }

/** Ten identities with sessions that may all dial every service, by one policy. */
function crowd() {
  const { state, log } = formedState()
  log.create('servicePolicy', 'p', policy('p', ['#crowd'], ['#all']))
  for (let n = 0; n < 10; n += 1) {
    log.create('identity', `i${n}`, identity(`i${n}`, ['crowd']))
    log.logIn(`as${n}`, `i${n}`, '')
  }
  const reader = new StateReader(state, clock)
  const marks = (): string[] => [...state.table('accessMark').ids]
  return { state, log, reader, marks }
}

describe('The service-updates times (lastChangeAt) of classes (identities with the same access)', () => {
  test('need only one record when the services of a whole class change', () => {
    const { log, reader, marks } = crowd()
    log.timeMs += 1000
    log.create('service', 's', service('s'))
    expect(marks()).toHaveLength(1)
    for (let n = 0; n < 10; n += 1) expect(reader.lastChangeAt(`as${n}`)).toBe(log.timeMs)
  })

  test('are kept by an identity that leaves its class, and then do not follow changes of the class', () => {
    const { log, reader } = crowd()
    log.timeMs += 1000
    log.create('service', 's', service('s'))
    const moved = log.timeMs
    log.create('servicePolicy', 'same', policy('same', ['@i3'], ['#all']))
    expect(reader.lastChangeAt('as3')).toBe(moved)
    log.timeMs += 1000
    log.create('servicePolicy', 'more', policy('more', ['@i4'], ['#all'], { type: 'Bind' }))
    expect([3, 4, 5].map((n) => reader.lastChangeAt(`as${n}`))).toEqual([moved, log.timeMs, moved])
  })

  test('stay the same for an identity that joins a class with a later time but sees the same services as before', () => {
    const { log, reader } = crowd()
    log.create('servicePolicy', 'other', policy('other', ['#other'], ['#all']))
    log.create('identity', 'x', identity('x', ['crowd', 'other']))
    log.logIn('asx', 'x', '')
    log.timeMs += 1000
    log.create('service', 's', service('s'))
    const moved = log.timeMs
    log.timeMs += 1000
    // These entries change only the services of the identity i0.
    log.create('configType', 'type', { name: 'type' })
    log.create('config', 'c', { name: 'c', configTypeId: 'type', data: {} })
    log.serviceConfigs('associate', 'i0', [['s', 'c']])
    log.patch('identity', 'x', { roleAttributes: ['crowd'] })
    expect(reader.lastChangeAt('as0')).toBe(log.timeMs)
    expect([1, 9].map((n) => reader.lastChangeAt(`as${n}`))).toEqual([moved, moved])
    expect(reader.lastChangeAt('asx')).toBe(moved)
  })

  test('change if a service is written in the log entry in which the identities lose access to it', () => {
    const { log, reader } = crowd()
    log.create('service', 's', service('s', ['x']))
    log.create('servicePolicy', 'x', policy('x', ['#gone'], ['#x'], { type: 'Bind' }))
    log.delete('servicePolicy', 'p')
    log.create('identity', 'y', identity('y', ['gone']))
    log.logIn('asy', 'y', '')
    log.timeMs += 1000
    const outcome = log.batch([
      [CommandKind.ENTITY_PATCH, 'service', 's', { tags: { written: true } }],
      [CommandKind.ENTITY_PATCH, 'identity', 'y', { roleAttributes: [] }],
    ])
    expect(outcome.ok).toBe(true)
    expect(reader.lastChangeAt('asy')).toBe(log.timeMs)
  })

  test('keep their old values for identities from several classes that join one new class', () => {
    const { log, reader } = crowd()
    log.create('service', 's', service('s'))
    log.create('servicePolicy', 'next', policy('next', ['#next'], ['#all']))
    log.create('servicePolicy', 'alone', policy('alone', ['@i0'], ['#all']))
    log.create('servicePolicy', 'x', policy('x', ['@i0'], ['#all'], { type: 'Bind' }))
    log.timeMs += 1000
    log.delete('servicePolicy', 'x')
    const moved = log.timeMs
    const before = reader.lastChangeAt('as1')
    expect(before).toBeLessThan(moved)
    log.timeMs += 1000
    const next = { roleAttributes: ['next'] }
    const outcome = log.batch([
      [CommandKind.ENTITY_PATCH, 'servicePolicy', 'alone', { identityRoles: [] }],
      [CommandKind.ENTITY_PATCH, 'identity', 'i0', next],
      [CommandKind.ENTITY_PATCH, 'identity', 'i1', next],
    ])
    expect(outcome.ok).toBe(true)
    expect([0, 1].map((n) => reader.lastChangeAt(`as${n}`))).toEqual([moved, before])
  })

  test('are removed with the last session of their identities', () => {
    const { log, marks } = crowd()
    log.timeMs += 1
    log.create('service', 's', service('s'))
    log.create('servicePolicy', 'b', policy('b', ['@i3'], ['#all'], { type: 'Bind' }))
    expect(marks().length).toBeGreaterThan(0)
    for (let n = 0; n < 10; n += 1) log.logOut(`as${n}`)
    expect(marks()).toEqual([])
  })
})

describe('The cached service lists of classes (identities with the same access)', () => {
  test('are shared by the identities of a class, created on demand, and updated by changes', () => {
    const { state, log, reader } = crowd()
    expect(state.access.size).toMatchObject({ classes: 1, views: 0 })
    const seen = (n: number): string[] =>
      reader.accessibleServices(`i${n}`, { limit: -1 }).records.map(({ id }) => id)
    expect(seen(1)).toEqual([])
    log.create('service', 'b', service('b'))
    log.create('service', 'a', service('a'))
    expect(state.access.size).toMatchObject({ classes: 1, views: 1, viewIds: 4 })
    expect(seen(2)).toEqual(['a', 'b'])
    log.delete('service', 'b')
    expect(seen(3)).toEqual(['a'])
    // All identities move to another class, and their view changes with it.
    log.create('servicePolicy', 'host', policy('host', ['#crowd'], ['@a'], { type: 'Bind' }))
    expect(state.access.size).toMatchObject({ classes: 1, views: 1, viewIds: 3 })
    expect(reader.permissions('i4', 'a')).toEqual(['Bind', 'Dial'])
  })

  test('are not kept for identities without a session', () => {
    const { state, log, reader } = crowd()
    log.create('service', 'a', service('a'))
    log.create('identity', 'absent', identity('absent', ['crowd']))
    expect(reader.permissions('absent', 'a')).toEqual(['Dial'])
    expect(reader.accessibleServices('absent', {}).totalCount).toBe(1)
    log.delete('service', 'a')
    expect(reader.accessibleServices('absent', {}).totalCount).toBe(0)
    expect(state.access.classes.activeCount).toBe(10)
  })
})

test('an administrator keeps a service session without a policy until the administrator rights end', () => {
  const { state, log } = crowd()
  log.create('service', 's', service('s'))
  log.create('edgeRouter', 'r', { name: 'r' })
  const roles = { name: 'all', semantic: 'AnyOf', edgeRouterRoles: ['#all'] }
  log.create('edgeRouterPolicy', 'e', { ...roles, identityRoles: ['#all'] })
  log.create('serviceEdgeRouterPolicy', 'f', { ...roles, serviceRoles: ['#all'] })
  log.patch('identity', 'i1', { isAdmin: true })
  for (const n of [0, 1]) {
    const init = { id: `ss${n}`, apiSessionId: `as${n}`, serviceId: 's', type: 'Dial' }
    const message = create(ServiceSessionCreateSchema, init)
    const payload = toBinary(ServiceSessionCreateSchema, message)
    const { outcome } = log.command(CommandKind.SERVICE_SESSION_CREATE, payload)
    expect(outcome).toEqual({ ok: true, id: `ss${n}` })
  }
  const sessions = (): string[] => [...state.table('session').ids]
  log.delete('servicePolicy', 'p')
  expect(sessions()).toEqual(['ss1'])
  log.patch('identity', 'i1', { isAdmin: false })
  expect(sessions()).toEqual([])
})
