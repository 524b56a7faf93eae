import { describe, expect, test } from 'vitest'

import { actorOf, decodeMessage, encodeMessage } from '../../src/cluster/membership/messages.ts'
import { enrollmentActor, systemActor } from '../../src/ports/actor.ts'
import type { Actor } from '../../src/ports/actor.ts'
import { anySession } from '../support/commands.ts'

/** As it comes from the controller that passes a request on. */
function received(by: unknown): Actor {
  return actorOf(decodeMessage(encodeMessage({ by }))['by'])
}

describe('who asked the controller that passes a request on', () => {
  test.each<[string, Actor]>([
    ['a controller', systemActor()],
    ['a user of its host', systemActor({ name: 'uid:1000 (op)' })],
    ['an identity in a session', anySession({ permission: 'admin' })],
    [
      'an enrollment',
      enrollmentActor({ enrollmentId: 'one' }, { method: 'ott', address: '10.0.0.1' }),
    ],
  ])('comes as it was sent: %s', (_what, by) => {
    expect(received(by)).toEqual(by)
  })

  test.each<[string, unknown]>([
    ['nobody', undefined],
    ['an actor of no kind', { value: { name: 'uid:0' } }],
    ['an actor of another kind', { case: 'anyone', value: {} }],
    ['an actor that says nothing', { case: 'system' }],
    ['a session without a permission', { case: 'session', value: withPermission(undefined) }],
    ['a session with an empty permission', { case: 'session', value: withPermission('') }],
    ['a session with an unknown permission', { case: 'session', value: withPermission('full') }],
    ['the form of before', { identityId: 'admin', sessionId: 's', address: '' }],
  ])('is refused as malformed: %s', (_what, by) => {
    expect(() => received(by)).toThrow(expect.objectContaining({ code: 'COULD_NOT_VALIDATE' }))
  })
})

function withPermission(permission: string | undefined): Record<string, unknown> {
  return { identityId: 'admin', sessionId: 'session', address: '', permission }
}
