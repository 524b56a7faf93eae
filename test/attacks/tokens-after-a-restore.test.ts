import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { CommandKind, SessionCreateSchema } from '../../proto/gen/command_pb.ts'
import { createSystemActor } from '../../src/ports/actor.ts'
import type { Outcome } from '../../src/ports/proposer.ts'
import type { LogWriter } from '../fsm/support/log.ts'
import { contentOf, restorableState, Restore } from '../fsm/support/restoring.ts'

// The attack: a restore into the running cluster ends all sessions. A holder of an access token
// continues to use it at edge routers, which verify tokens themselves; a holder of an authorization
// code redeems it again, and gets valid tokens.

function redeem(log: LogWriter, id: string): Outcome | null {
  const message = create(SessionCreateSchema, {
    id,
    identityId: 'admin',
    authenticatorId: 'admin-updb',
    ipAddress: '127.0.0.1',
    oidc: { clientId: 'native', codeHash: 'ab'.repeat(32) },
  })
  const payload = toBinary(SessionCreateSchema, message)
  const actor = createSystemActor({ name: 'test', identityId: 'admin' })
  return log.command(CommandKind.SESSION_CREATE, payload, { actor, level: 2 }).outcome
}

test('the tokens and codes of a session that a restore has ended are invalid', () => {
  const backup = restorableState()
  const content = contentOf(backup.state)
  const { state, log } = restorableState()
  expect(redeem(log, 'session')).toMatchObject({ ok: true })
  expect(log.logIn('of-a-controller')).toMatchObject({ ok: true })
  const restore = new Restore(log, content)
  restore.stage()
  expect(restore.end()).toMatchObject({ ok: true })
  expect([...state.table('apiSession').ids]).toEqual([])
  // Revocations, by which routers learn that a session has ended. There is none for other sessions,
  // because routers accept no token of theirs.
  expect([...state.table('revocation').ids]).toEqual(['session'])
  expect(state.get('revocation', 'session')).toMatchObject({ type: 'API_SESSION' })
  expect(redeem(log, 'session')).toMatchObject({ ok: false, code: 'INVALID_AUTH' })
})
