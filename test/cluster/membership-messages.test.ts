import { describe, expect, test } from 'vitest'

import { readRequesterActor } from '../../src/cluster/membership/messages.ts'
import { decodePeerMessage, encodePeerMessage } from '../../src/cluster/peer/peer-message.ts'
import { peerMethods } from '../../src/cluster/peer/peer-methods.ts'
import { type Actor, createEnrollmentActor, createSystemActor } from '../../src/ports/actor.ts'
import { anySession } from '../support/commands.ts'

const { request } = peerMethods.change

/** The actor of a request after the request was sent to another controller. */
function received(by: unknown): Actor {
  const message = { by: { actor: by } } as never
  return readRequesterActor(decodePeerMessage(request, encodePeerMessage(request, message)).by)
}

describe('the original actor in a forwarded request', () => {
  test.each<[string, Actor]>([
    ['a controller', createSystemActor()],
    ['a user of its host', createSystemActor({ name: 'uid:1000 (op)' })],
    ['an identity in a session', anySession({ permission: 'admin' })],
    [
      'an enrollment',
      createEnrollmentActor({ enrollmentId: 'one' }, { method: 'ott', address: '10.0.0.1' }),
    ],
  ])('is the same after encoding and decoding: %s', (_what, by) => {
    expect(received(by)).toEqual(by)
  })

  test.each<[string, unknown]>([
    ['no actor', undefined],
    ['a session without a permission', { case: 'session', value: withPermission(undefined) }],
    ['a session with an empty permission', { case: 'session', value: withPermission('') }],
    ['a session with an unknown permission', { case: 'session', value: withPermission('full') }],
  ])('is rejected as malformed: %s', (_what, by) => {
    expect(() => received(by)).toThrow(expect.objectContaining({ code: 'COULD_NOT_VALIDATE' }))
  })

  test('is required: a request without an actor is rejected', () => {
    expect(() => readRequesterActor(undefined)).toThrow('by is none of')
  })
})

function withPermission(permission: string | undefined): Record<string, unknown> {
  return { identityId: 'admin', sessionId: 'session', address: '', permission }
}
