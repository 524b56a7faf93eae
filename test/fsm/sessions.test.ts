import { expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import type { EntityRecord } from '../../src/lib/entity-record.ts'
import { formedState, identity, startMs } from './support/log.ts'
import { restorableState } from './support/restoring.ts'

test('a log-in is refused without an existing identity and one of its authenticators', () => {
  const { log } = formedState()
  log.create('identity', 'i1', identity('ann'))
  const refusal = { ok: false, code: 'INVALID_AUTH', fault: null, detail: null }
  expect(log.logIn('s1', 'nobody')).toEqual(refusal)
  expect(log.logIn('s1', 'i1', 'admin-updb')).toEqual(refusal)
  expect(log.logIn('s1', 'admin', 'nothing')).toEqual(refusal)
  expect(log.logIn('s1')).toEqual({ ok: true, id: 's1' })
})

test('a disabled identity cannot log in until the given time is over', () => {
  const { log, state } = formedState()
  const admin = state.get('identity', 'admin')
  state.put('identity', {
    ...admin,
    id: 'admin',
    disabledAt: startMs,
    disabledUntil: startMs + 60_000,
  })
  expect(log.logIn('s1')).toMatchObject({ code: 'INVALID_AUTH' })
  log.timeMs = startMs + 60_000
  expect(log.logIn('s1').ok).toBe(true)
  state.put('identity', { ...admin, id: 'admin', disabledAt: startMs, disabledUntil: null })
  expect(log.logIn('s2')).toMatchObject({ code: 'INVALID_AUTH' })
})

test('a log-in is refused if, when its log entry is applied, the auth policy does not allow its method', () => {
  const { log, state } = formedState()
  const policy = requirePresent(state.get('authPolicy', 'default'), 'the default policy')
  const { primary } = policy
  const allowing = (allowed: boolean) => ({ ...primary, updb: { ...primary.updb, allowed } })
  state.put('authPolicy', { ...policy, primary: allowing(false) } as EntityRecord)
  expect(log.logIn('s1', 'admin', 'admin-updb')).toMatchObject({ code: 'INVALID_AUTH' })
  state.put('authPolicy', { ...policy, primary: allowing(true) } as EntityRecord)
  expect(log.logIn('s1', 'admin', 'admin-updb').ok).toBe(true)
})

test('a session id can be used only once', () => {
  const { log } = formedState()
  log.logIn('s1')
  expect(log.logIn('s1')).toMatchObject({ ok: false })
})

test('a log-in stores the details of its client in the record of the identity', () => {
  const { log, state } = formedState()
  log.logIn('s1', 'admin', 'admin-updb', '{"os":"linux"}')
  log.logIn('s2')
  expect(state.get('identity', 'admin')).toMatchObject({ envInfo: { os: 'linux' }, sdkInfo: {} })
})

test('the last-activity time of a session never decreases, and never exceeds log time', () => {
  const { log, state } = formedState()
  const last = (): number | null | undefined => state.get('apiSession', 's1')?.lastActivityAt
  log.logIn('s1')
  log.timeMs = startMs + 10_000
  log.touch('s1', startMs + 4000)
  expect(last()).toBe(startMs + 4000)
  log.touch('s1', startMs + 1000)
  expect(last()).toBe(startMs + 4000)
  log.touch('s1', startMs + 99_000)
  expect(last()).toBe(startMs + 10_000)
  expect(log.touch('gone', startMs).ok).toBe(true)
})

test('the command to remove an expired session is refused if the session has more recent activity', () => {
  const { log, state } = formedState()
  log.logIn('s1')
  log.timeMs = startMs + 10_000
  log.touch('s1', startMs + 5000)
  expect(log.expire('s1', startMs)).toMatchObject({ ok: false, code: 'REVISION_MOVED' })
  expect(state.get('apiSession', 's1')).toBeDefined()
  expect(log.expire('s1', startMs + 5000).ok).toBe(true)
  expect(state.get('apiSession', 's1')).toBeUndefined()
})

test('from feature level 2 on, the command to remove an expired session is refused before the session’s expiry in log time', () => {
  const { log, state } = restorableState()
  log.logIn('s1')
  const endsMs = startMs + 60_000
  for (const expiresAtMs of [endsMs, 0]) {
    const refused = { ok: false, code: 'REVISION_MOVED' }
    expect(log.expire('s1', startMs, expiresAtMs)).toMatchObject(refused)
  }
  log.timeMs = endsMs - 1
  expect(log.expire('s1', startMs, endsMs).ok).toBe(false)
  log.timeMs = endsMs
  expect(log.expire('s1', startMs, endsMs).ok).toBe(true)
  expect(state.get('apiSession', 's1')).toBeUndefined()
})

test('a log-out ends the session, and a repeated log-out returns NOT_FOUND', () => {
  const { log, state } = formedState()
  log.logIn('s1')
  expect(log.logOut('s1')).toEqual({ ok: true, id: 's1' })
  expect(state.get('apiSession', 's1')).toBeUndefined()
  expect(log.logOut('s1')).toMatchObject({ code: 'NOT_FOUND' })
})

test('deleting an authenticator ends the sessions that it opened', () => {
  const { log, state } = formedState()
  log.create('identity', 'i1', identity('ann'))
  const credential = {
    identityId: 'i1',
    method: 'updb',
    username: 'anna',
    passwordHash: '$argon2id$x',
  }
  log.raw(CommandKind.ENTITY_CREATE, 'authenticator', 'a1', credential)
  log.logIn('s1', 'i1', 'a1')
  expect(state.get('apiSession', 's1')).toBeDefined()
  expect(log.delete('authenticator', 'a1').ok).toBe(true)
  expect(state.get('apiSession', 's1')).toBeUndefined()
})
