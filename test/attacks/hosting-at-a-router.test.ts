import { describe, expect, test } from 'vitest'

import { Hosting } from '../fsm/support/hosting.ts'

// The attack: a router, or a client through it, gets the traffic of a service that it may not host.

test('a session that allows only dialing cannot host', () => {
  expect(new Hosting().host({ sessionId: 'dial' })).toMatchObject({ code: 'INVALID_AUTH' })
})

test('a session that has ended cannot host', () => {
  const hosting = new Hosting()
  hosting.log.delete('servicePolicy', 'p1')
  expect(hosting.state.get('session', 'bind')).toBeUndefined()
  expect(hosting.host()).toMatchObject({ code: 'INVALID_AUTH' })
})

test('a router that no policy permits for the identity and the service cannot host', () => {
  expect(new Hosting().host({}, 'r3')).toMatchObject({ code: 'NO_EDGE_ROUTERS_AVAILABLE' })
})

test('a disabled router cannot create, change or remove terminators', () => {
  const hosting = new Hosting()
  hosting.host()
  hosting.log.patch('edgeRouter', 'r1', { disabled: true })
  expect(hosting.host({ id: 't2' })).toMatchObject({ code: 'UNAUTHORIZED' })
  expect(hosting.change({ cost: 5 })).toMatchObject({ code: 'UNAUTHORIZED' })
  expect(hosting.remove(['t1'])).toMatchObject({ code: 'UNAUTHORIZED' })
})

test('a router cannot change or remove terminators of another router', () => {
  const hosting = new Hosting()
  hosting.host()
  expect(hosting.change({ cost: 5 }, 'r2')).toMatchObject({ code: 'NOT_FOUND' })
  hosting.remove(['t1'], 'r2')
  expect(hosting.terminator()).toMatchObject({ routerId: 'r1', cost: 0 })
})

test('a request of a router to remove another router’s terminator is refused, and removes no terminator', () => {
  const hosting = new Hosting()
  hosting.host()
  hosting.host({ id: 't2' }, 'r2')
  hosting.state.featureLevel = 2
  expect(hosting.remove(['t2', 't1'], 'r2')).toMatchObject({ ok: false, code: 'NOT_FOUND' })
  expect(hosting.state.get('terminator', 't2')).toBeDefined()
  expect(hosting.remove(['t2', 'gone'], 'r2').ok).toBe(true)
})

test('a host cannot join another identity’s terminator instance, even with the instance secret', () => {
  const hosting = new Hosting()
  hosting.state.featureLevel = 2
  const instance = { instanceId: 'front', instanceSecret: 'c2VjcmV0' }
  hosting.host(instance)
  const [other, again] = [hosting.newHost('i2'), { ...instance, id: 't3' }]
  expect(hosting.host({ ...instance, id: 't2', sessionId: other })).toMatchObject({
    ok: false,
    code: 'COULD_NOT_VALIDATE',
    fault: { field: 'identity' },
  })
  expect(hosting.host(again).ok).toBe(true)
})

test('a host cannot join another host’s terminator instance without the instance secret', () => {
  const hosting = new Hosting()
  hosting.host({ instanceId: 'front', instanceSecret: 'c2VjcmV0' })
  const other = { id: 't2', instanceId: 'front', instanceSecret: 'Z3Vlc3M=' }
  expect(hosting.host(other)).toMatchObject({ ok: false, code: 'COULD_NOT_VALIDATE' })
})

describe('a router that hosts a service through its own tunneler', () => {
  const itself = { sessionId: '', serviceId: 's1' }
  const tunneling = (): Hosting => {
    const hosting = new Hosting()
    hosting.state.featureLevel = 2
    hosting.log.patch('edgeRouter', 'r1', { isTunnelerEnabled: true })
    return hosting
  }

  test('is refused when the tunneler is disabled', () => {
    const hosting = tunneling()
    expect(hosting.host(itself).ok).toBe(true)
    expect(hosting.terminator()).toMatchObject({ hostId: 'r1', binding: 'tunnel', isSystem: true })
    hosting.log.patch('edgeRouter', 'r1', { isTunnelerEnabled: false })
    hosting.state.put('identity', { ...hosting.state.get('identity', 'i1'), id: 'r1' })
    expect(hosting.host({ ...itself, id: 't2' })).toMatchObject({ code: 'INVALID_AUTH' })
  })

  test('is refused while the router’s identity is disabled', () => {
    const hosting = tunneling()
    const identity = hosting.state.get('identity', 'r1')
    hosting.state.put('identity', { ...identity, id: 'r1', disabledAt: 1, disabledUntil: null })
    expect(hosting.host(itself)).toMatchObject({ code: 'INVALID_AUTH' })
  })

  test('is refused if the policy requires posture checks, because a router cannot report posture', () => {
    const hosting = tunneling()
    const check = { name: 'c', typeId: 'DOMAIN', domains: ['corp.test'] }
    hosting.log.create('postureCheck', 'c1', check)
    hosting.log.patch('servicePolicy', 'p1', { postureCheckRoles: ['@c1'] })
    expect(hosting.host(itself)).toMatchObject({ code: 'INVALID_AUTH' })
    hosting.log.delete('servicePolicy', 'p1')
    expect(hosting.host(itself)).toMatchObject({ code: 'INVALID_AUTH' })
  })

  test('is refused below the feature level that lets routers host through their tunneler', () => {
    const hosting = tunneling()
    hosting.state.featureLevel = 1
    expect(hosting.host(itself)).toMatchObject({ code: 'INVALID_AUTH' })
  })
})
