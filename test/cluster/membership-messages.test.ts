import { describe, expect, test } from 'vitest'

import { actorOfMessage } from '../../src/cluster/membership/messages.ts'
import {
  decodePeerMessage,
  encodePeerMessage,
  type PeerForm,
} from '../../src/cluster/peer/peer-message.ts'
import { peerMethods } from '../../src/cluster/peer/peer-methods.ts'
import { type Actor, enrollmentActor, systemActor } from '../../src/ports/actor.ts'
import { anySession } from '../support/commands.ts'

const { request } = peerMethods.change

/** As it comes from the controller that passes a request on. */
function received(by: Actor, form: PeerForm): Actor {
  const message = { by: { actor: by } }
  return actorOfMessage(decodePeerMessage(request, encodePeerMessage(request, message, form)).by)
}

/** As release 0.1 writes it. */
function receivedJson(by: unknown): Actor {
  const payload = new TextEncoder().encode(JSON.stringify({ verb: 'remove', id: 'n1', by }))
  return actorOfMessage(decodePeerMessage(request, payload).by)
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
    expect(received(by, 'protobuf')).toEqual(by)
    expect(received(by, 'json')).toEqual(by)
    expect(receivedJson(by)).toEqual(by)
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
    expect(() => receivedJson(by)).toThrow(expect.objectContaining({ code: 'COULD_NOT_VALIDATE' }))
  })

  test('is refused when it names nobody, or a permission that no session has', () => {
    expect(() => actorOfMessage(undefined)).toThrow('by is none of')
    const claim = { case: 'session', value: withPermission('full') } as never
    expect(() => received(claim, 'protobuf')).toThrow('permission is none of a session')
  })
})

function withPermission(permission: string | undefined): Record<string, unknown> {
  return { identityId: 'admin', sessionId: 'session', address: '', permission }
}
