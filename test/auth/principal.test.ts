import { expect, test } from 'vitest'
import {
  actorForPrincipal,
  type MonitoringClient,
  type Principal,
  type SessionPrincipal,
} from '../../src/auth/principal/principal.ts'
import { zeroRecord } from '../../src/entities/define-entity.ts'
import { apiSession } from '../../src/entities/kinds/api-session.ts'
import { identity } from '../../src/entities/kinds/identity.ts'
import { actorFault, actorName, createSystemActor } from '../../src/ports/actor.ts'

const address = '10.0.0.7'
const held = {
  session: zeroRecord(apiSession, 's1'),
  identity: zeroRecord(identity, 'alice'),
  isAdmin: false,
  pendingFactors: [],
}
const session: SessionPrincipal = {
  ...held,
  kind: 'session',
  address,
  permission: 'session',
}
const enrolling = { kind: 'enrolling', address, method: 'ott' } as const

test.each<[string, Exclude<Principal, MonitoringClient>]>([
  ['alice', session],
  ['uid:0', { ...held, kind: 'hostUser', actor: createSystemActor({ name: 'uid:0' }) }],
  ['router:r1', { kind: 'router', routerId: 'r1', address }],
  ['enrollment:e1', { ...enrolling, shown: { enrollmentId: 'e1' } }],
  ['ca:c1', { ...enrolling, shown: { caId: 'c1' } }],
  ['signer:j1', { ...enrolling, shown: { signerId: 'j1' } }],
])(
  'the state machine accepts the actor %s, which is derived from the principal of a caller',
  (name, principal) => {
    const actor = actorForPrincipal(principal)
    expect(actorName(actor)).toBe(name)
    expect(actorFault(actor)).toBeNull()
  },
)

test('the actor of a log entry that a session proposes contains the external JWT of the request', () => {
  const token = { signerId: 'j1', signerRevision: 3, claim: 'alice', expiresAtMs: 1 }
  expect(actorForPrincipal({ ...session, token })).toEqual({
    case: 'session',
    value: {
      identityId: 'alice',
      sessionId: 's1',
      address,
      permission: 'session',
      signerId: 'j1',
      signerRevision: '3',
    },
  })
})
