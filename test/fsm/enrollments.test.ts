import { describe, expect, test } from 'vitest'
import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, FeatureLevelRaiseSchema } from '../../proto/gen/command_pb.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import { formedState, identity, type LogWriter, startMs } from './support/log.ts'
import { restorableState } from './support/restoring.ts'

const refusedWith = (code: string, field?: string): object => ({
  ok: false,
  code,
  ...(field === undefined ? {} : { fault: { field } }),
})

let serial = 0

function fields(changes: JsonObject = {}): JsonObject {
  serial += 1
  const token = { token: `token ${serial}`, jwt: 'j.w.t', expiresAt: startMs + 60_000 }
  return { method: 'ott', identityId: 'i1', ...token, ...changes }
}

function enroll(log: LogWriter, id: string, changes: JsonObject = {}): unknown {
  return log.raw(CommandKind.ENTITY_CREATE, 'enrollment', id, fields(changes))
}

function withIdentity(): ReturnType<typeof formedState> {
  const formed = formedState()
  formed.log.create('identity', 'i1', identity('ann'))
  return formed
}

describe('The creation of an enrollment', () => {
  test.each([
    ['identityId', { identityId: 'nobody', method: 'x', expiresAt: 1, username: '' }],
    ['method', { method: 'erott', expiresAt: 1 }],
    ['expiresAt', { method: 'ottca', expiresAt: startMs }],
    ['expiresAt', { method: 'updb', expiresAt: null }],
    ['caId', { method: 'ottca', caId: 'nowhere' }],
    ['caId', { method: 'ottca' }],
    ['username', { method: 'updb' }],
    ['username', { method: 'updb', username: 'ann' }],
    ['username', { method: 'updb', username: 'u'.repeat(101) }],
  ])(
    'is refused because of the field %s, the first that is invalid or missing, if the body is %j',
    (field, changes) => {
      const { log, state } = withIdentity()
      expect(enroll(log, 'e1', changes)).toMatchObject(refusedWith('COULD_NOT_VALIDATE', field))
      expect(state.table('enrollment').rows.size).toBe(0)
    },
  )

  test('is refused as a conflict if the identity has an enrollment with the same method, even an expired one', () => {
    const { log } = withIdentity()
    expect(enroll(log, 'e1')).toMatchObject({ ok: true })
    log.timeMs += 3_600_000
    const inFuture = { expiresAt: log.timeMs + 1000 }
    expect(enroll(log, 'e2', inFuture)).toMatchObject({
      ...refusedWith('ENROLLMENT_EXISTS', 'method'),
      fault: { value: 'ott' },
    })
    expect(enroll(log, 'e3', { ...inFuture, method: 'updb', username: 'ann-lee' })).toMatchObject({
      ok: true,
    })
    log.create('identity', 'i2', identity('bob'))
    expect(enroll(log, 'e4', { ...inFuture, identityId: 'i2' })).toMatchObject({ ok: true })
  })

  test('is refused for the identity of a router', () => {
    const { log } = withIdentity()
    log.create('edgeRouter', 'r1', { name: 'gate', isTunnelerEnabled: true })
    expect(enroll(log, 'e1', { identityId: 'r1' })).toMatchObject({
      ...refusedWith('COULD_NOT_VALIDATE', 'identityId'),
      fault: { reason: expect.stringContaining('type Router') },
    })
  })

  test('creates the enrollment and its new identity in one log entry, or none of them', () => {
    const { log, state } = formedState()
    const make = (changes: JsonObject) =>
      log.batch([
        [CommandKind.ENTITY_CREATE, 'identity', 'i1', { name: 'ann', isAdmin: false }],
        [CommandKind.ENTITY_CREATE, 'enrollment', 'e1', fields(changes)],
      ])
    expect(make({ method: 'ottca', caId: 'nowhere' })).toMatchObject({ ok: false })
    expect(state.get('identity', 'i1')).toBeUndefined()
    expect(make({})).toEqual({ ok: true, id: 'i1' })
    expect(state.get('enrollment', 'e1')).toMatchObject({ identityId: 'i1' })
  })
})

describe('The refresh of an open or expired enrollment', () => {
  test('sets a new token and a later expiry, and refuses an expiry that log time has already passed', () => {
    const { log, state } = withIdentity()
    enroll(log, 'e1')
    log.timeMs += 3_600_000
    const refresh = (expiresAt: number) =>
      log.raw(CommandKind.ENTITY_PATCH, 'enrollment', 'e1', { token: 'new', jwt: 'n', expiresAt })
    expect(refresh(log.timeMs)).toMatchObject(refusedWith('COULD_NOT_VALIDATE', 'expiresAt'))
    expect(state.get('enrollment', 'e1')).not.toMatchObject({ token: 'new' })
    expect(refresh(log.timeMs + 1)).toMatchObject({ ok: true })
    expect(state.get('enrollment', 'e1')).toMatchObject({
      token: 'new',
      expiresAt: log.timeMs + 1,
      identityId: 'i1',
      method: 'ott',
    })
  })
})

describe('The removal of an open enrollment', () => {
  test('happens if the enrollment or its identity is deleted', () => {
    const { log, state } = withIdentity()
    enroll(log, 'e1')
    expect(log.delete('enrollment', 'e1').ok).toBe(true)
    expect(enroll(log, 'e2')).toMatchObject({ ok: true })
    expect(log.delete('identity', 'i1').ok).toBe(true)
    expect(state.table('enrollment').rows.size).toBe(0)
  })
})

describe('The re-enrollment of an authenticator', () => {
  const credential = {
    identityId: 'i1',
    method: 'updb',
    username: 'ann-lee',
    passwordHash: '$argon2id$x',
  }
  const reEnroll = (log: LogWriter, changes: JsonObject) =>
    log.batch(
      [
        [CommandKind.ENTITY_DELETE, 'authenticator', 'a1', {}],
        [CommandKind.ENTITY_CREATE, 'enrollment', 'e1', fields(changes)],
      ],
      1,
    )

  test('deletes the authenticator with its sessions, and creates an enrollment', () => {
    const { log, state } = withIdentity()
    log.raw(CommandKind.ENTITY_CREATE, 'authenticator', 'a1', credential)
    log.logIn('sess', 'i1', 'a1')
    expect(reEnroll(log, { method: 'updb', username: 'ann-lee' })).toEqual({ ok: true, id: 'e1' })
    expect(state.get('authenticator', 'a1')).toBeUndefined()
    expect(state.get('apiSession', 'sess')).toBeUndefined()
  })

  test.each([
    ['ENROLLMENT_EXISTS', {}],
    ['COULD_NOT_VALIDATE', { expiresAt: startMs }],
  ])('that is refused with %s keeps the authenticator and its sessions', (code, changes) => {
    const { log, state } = withIdentity()
    log.raw(CommandKind.ENTITY_CREATE, 'authenticator', 'a1', credential)
    log.logIn('sess', 'i1', 'a1')
    const updb = { method: 'updb', username: 'ann-lee' }
    enroll(log, 'e0', updb)
    expect(reEnroll(log, { ...updb, ...changes })).toMatchObject({ ok: false, code })
    expect(state.get('authenticator', 'a1')).toMatchObject({ username: 'ann-lee' })
    expect(state.get('apiSession', 'sess')).toBeDefined()
  })
})

test('enrollments are part of the digest of the whole state, and not of the digest of the records that clients see', () => {
  const { log, state } = withIdentity()
  const before = { entities: state.entitiesDigest(), state: state.stateDigest() }
  enroll(log, 'e1')
  expect(state.entitiesDigest()).toBe(before.entities)
  expect(state.stateDigest()).not.toBe(before.state)
})

describe('an open enrollment of an identity that gains rights', () => {
  test('is deleted by the write that grants the rights, and the audit record lists the enrollment', () => {
    const { log, state } = restorableState()
    log.create('identity', 'i1', identity('ann'))
    enroll(log, 'e1')
    expect(log.patch('identity', 'i1', { permissions: ['ca'] })).toMatchObject({ ok: true })
    expect([...state.table('enrollment').ids]).toEqual([])
    const [told] = state.audit.page(0, 1)
    expect(told).toMatchObject({ entity: 'identity', also: ['delete enrollment e1'] })
  })

  test('is not deleted at feature level 1, because members of an older release would keep it', () => {
    const { log, state } = withIdentity()
    enroll(log, 'e1')
    expect(log.patch('identity', 'i1', { isAdmin: true })).toMatchObject({ ok: true })
    expect([...state.table('enrollment').ids]).toEqual(['e1'])
  })

  test('is deleted when the feature level is raised to 2, but enrollments of other identities are kept', () => {
    const { log, state } = withIdentity()
    enroll(log, 'e1')
    log.patch('identity', 'i1', { isAdmin: true })
    log.create('identity', 'i2', identity('bob'))
    enroll(log, 'e2', { identityId: 'i2' })
    const message = create(FeatureLevelRaiseSchema, { level: 2 })
    log.command(CommandKind.FEATURE_LEVEL_RAISE, toBinary(FeatureLevelRaiseSchema, message))
    expect([...state.table('enrollment').ids]).toEqual(['e2'])
  })
})
