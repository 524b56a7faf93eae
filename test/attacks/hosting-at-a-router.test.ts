import { expect, test } from 'vitest'

import { Hosting } from '../fsm/support/hosting.ts'

// The attack: a router, or a client through it, takes the traffic of a service that it may not host.

test('a session that may only dial hosts nothing', () => {
  expect(new Hosting().host({ sessionId: 'dial' })).toMatchObject({ code: 'INVALID_AUTH' })
})

test('a session that has ended hosts nothing', () => {
  const hosting = new Hosting()
  hosting.log.delete('servicePolicy', 'p1')
  expect(hosting.state.get('session', 'bind')).toBeUndefined()
  expect(hosting.host()).toMatchObject({ code: 'INVALID_AUTH' })
})

test('a router that no policy gives to the identity and the service hosts nothing', () => {
  expect(new Hosting().host({}, 'r3')).toMatchObject({ code: 'NO_EDGE_ROUTERS_AVAILABLE' })
})

test('a router that is disabled hosts, changes and removes nothing', () => {
  const hosting = new Hosting()
  hosting.host()
  hosting.log.patch('edgeRouter', 'r1', { disabled: true })
  expect(hosting.host({ id: 't2' })).toMatchObject({ code: 'UNAUTHORIZED' })
  expect(hosting.change({ cost: 5 })).toMatchObject({ code: 'UNAUTHORIZED' })
  expect(hosting.remove(['t1'])).toMatchObject({ code: 'UNAUTHORIZED' })
})

test('a router changes and removes no terminators of another router', () => {
  const hosting = new Hosting()
  hosting.host()
  expect(hosting.change({ cost: 5 }, 'r2')).toMatchObject({ code: 'NOT_FOUND' })
  hosting.remove(['t1'], 'r2')
  expect(hosting.terminator()).toMatchObject({ routerId: 'r1', cost: 0 })
})

test('a host does not join the instance of another one without its secret', () => {
  const hosting = new Hosting()
  hosting.host({ instanceId: 'front', instanceSecret: 'c2VjcmV0' })
  const other = { id: 't2', instanceId: 'front', instanceSecret: 'Z3Vlc3M=' }
  expect(hosting.host(other)).toMatchObject({ ok: false, code: 'COULD_NOT_VALIDATE' })
})
