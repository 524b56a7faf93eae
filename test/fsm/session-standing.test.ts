import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'

import { findEntity } from '../../src/entities/registry.ts'
import type { KindName } from '../../src/entities/kind-records.ts'
import { CommandKind, FeatureLevelRaiseSchema } from '../../proto/gen/command_pb.ts'
import { sessionValidity } from '../../src/fsm/apply/session-validity.ts'
import { sessionValidityKinds } from '../../src/fsm/records/state.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import type { EntityRecord } from '../../src/lib/entity-record.ts'
import type { ValidityRecords } from '../../src/ports/state-view.ts'
import { formedState, identity, type LogWriter, service } from './support/log.ts'
import type { ClusterState } from '../../src/fsm/access/cluster-state.ts'

// Goal: a session is checked once, and again only after a record that affects it was written.

/**
 * The identity Alice, in a session that was opened with a certificate of a CA and needs both second
 * factors.
 */
function withAlice() {
  const { state, log } = formedState()
  const policy = requirePresent(state.get('authPolicy', 'default'), 'the default policy')
  const secondary = { requireTotp: false, requireExtJwtSigner: 'of-tokens' }
  state.put('authPolicy', { ...policy, secondary } as EntityRecord)
  log.create('identity', 'alice', identity('Alice'))
  log.logIn('of-alice', 'alice', '')
  put(state, 'mfa', { id: 'alice', isVerified: true })
  put(state, 'authenticator', { id: 'by-cert', identityId: 'alice', caId: 'of-alices' })
  put(state, 'ca', { id: 'of-alices', isVerified: true, isAuthEnabled: true })
  put(state, 'externalJwtSigner', {
    id: 'of-logins',
    name: 'of log-ins',
    issuer: 'https://idp.test',
    audience: 'us',
    jwksEndpoint: 'https://idp.test/keys',
    enabled: true,
  })
  write(state, 'apiSession', 'of-alice', {
    certFingerprint: 'of her certificate',
    authenticatorId: 'by-cert',
    signerId: 'of-logins',
  })
  return { state, log }
}

function put(state: ClusterState, kind: KindName, values: Readonly<Record<string, unknown>>): void {
  state.put(kind, { createdAt: 1, updatedAt: 1, revision: 1, ...values } as EntityRecord)
}

function write(
  state: ClusterState,
  kind: KindName,
  id: string,
  fields: Readonly<Record<string, unknown>> = {},
): void {
  const record = requirePresent(state.get(kind, id), 'the record')
  state.put(kind, { ...record, revision: record.revision + 1, ...fields } as EntityRecord)
}

function raise(log: LogWriter, level: number): void {
  const payload = toBinary(FeatureLevelRaiseSchema, create(FeatureLevelRaiseSchema, { level }))
  expect(log.command(CommandKind.FEATURE_LEVEL_RAISE, payload).outcome?.ok).toBe(true)
}

const alice = (records: ValidityRecords) =>
  requirePresent(sessionValidity(records, 'of-alice'), 'her standing')

test('the validity of a session is evaluated once and then cached, even if unrelated records are written', () => {
  const { state, log } = withAlice()
  const first = alice(state)
  expect(first).toMatchObject({
    session: { id: 'of-alice' },
    identity: { id: 'alice' },
    isHonored: true,
    isAdmin: false,
    pendingFactors: [{ kind: 'totp' }, { kind: 'extJwt', signerId: 'of-tokens' }],
  })
  expect(log.create('service', 'wiki', service('wiki')).ok).toBe(true)
  log.create('identity', 'bob', identity('Bob'))
  expect(alice(state)).toBe(first)
})

test.each([
  ['apiSession', 'of-alice'],
  ['identity', 'alice'],
  ['authPolicy', 'default'],
  ['authenticator', 'by-cert'],
  ['ca', 'of-alices'],
  ['externalJwtSigner', 'of-logins'],
  ['mfa', 'alice'],
])('the validity of a session is evaluated again after a write of the kind %s', (kind, id) => {
  const { state } = withAlice()
  const before = alice(state)
  write(state, findEntity(kind).name, id)
  expect(alice(state)).not.toBe(before)
  expect(alice(state)).toBe(alice(state))
})

test.each<[string, string, Readonly<Record<string, unknown>>, object]>([
  [
    'its identity becomes an administrator',
    'identity alice',
    { isAdmin: true },
    { isAdmin: false },
  ],
  [
    'its CA no longer allows log-ins',
    'ca of-alices',
    { isAuthEnabled: false },
    { isHonored: false },
  ],
  [
    'its external JWT signer is disabled',
    'externalJwtSigner of-logins',
    { enabled: false },
    { isHonored: false },
  ],
  [
    'a TOTP code was accepted in the session',
    'apiSession of-alice',
    { isMfaComplete: true },
    { pendingFactors: [{ kind: 'extJwt' }] },
  ],
  [
    'the MFA of its identity is removed',
    'mfa alice',
    { isVerified: false },
    { pendingFactors: [{ kind: 'extJwt' }] },
  ],
])(
  'the validity of a session is evaluated with the current records after this change: %s',
  (_what, record, fields, standing) => {
    const { state } = withAlice()
    alice(state)
    const [kind = '', id = ''] = record.split(' ')
    write(state, findEntity(kind).name, id, fields)
    expect(alice(state)).toMatchObject(standing)
  },
)

test('the session of an administrator has administrator rights, and the session of another identity has none', () => {
  const { state, log } = formedState()
  log.create('identity', 'bob', identity('Bob'))
  log.logIn('of-bob', 'bob', '')
  log.logIn('of-admin')
  expect(sessionValidity(state, 'of-admin')).toMatchObject({ isAdmin: true, pendingFactors: [] })
  expect(sessionValidity(state, 'of-bob')).toMatchObject({ isAdmin: false, pendingFactors: [] })
})

test('the validity of a session that was evaluated during a reverted write is not cached', () => {
  const { state } = withAlice()
  state.transact(() => {
    write(state, 'ca', 'of-alices', { isAuthEnabled: false })
    expect(alice(state).isHonored).toBe(false)
    return { ok: false, code: 'REVISION_MOVED', fault: null, detail: null }
  })
  expect(alice(state).isHonored).toBe(true)
})

test('in a layer (changes on top of the state), the validity of a session depends on the changed records; in the state, it does not', () => {
  const { state } = withAlice()
  const layer = state.layer(100)
  write(layer, 'ca', 'of-alices', { isAuthEnabled: false })
  // Makes as many writes as the state has had, so that the two differ only in their records.
  while (layer.standingVersion < state.standingVersion) write(layer, 'mfa', 'alice')
  expect(layer.standingVersion).toBe(state.standingVersion)
  expect(alice(state).isHonored).toBe(true)
  expect(alice(layer).isHonored).toBe(false)
  expect(alice(state).isHonored).toBe(true)
})

test('the validity of a session depends only on the session, its identity and the kinds of records whose writes clear the cache', () => {
  const { state } = withAlice()
  const read = new Set<string>()
  const watched: ValidityRecords = {
    standingVersion: 0,
    get: (kind, id) => {
      read.add(kind)
      return state.get(kind, id)
    },
  }
  alice(watched)
  expect([...read].sort()).toEqual(['apiSession', 'identity', ...sessionValidityKinds].sort())
})

test('a missing session, or a session without an identity, is not valid', () => {
  const { state } = withAlice()
  expect(sessionValidity(state, 'nobody')).toBeNull()
  state.remove('identity', 'alice')
  expect(sessionValidity(state, 'of-alice')).toBeNull()
})

describe('sessions whose signer is disabled', () => {
  test('end when the signer is disabled, but other sessions continue', () => {
    const { state, log } = withAlice()
    state.featureLevel = 2
    log.logIn('of-admin')
    expect(log.patch('externalJwtSigner', 'of-logins', { name: 'renamed' }).ok).toBe(true)
    expect(sessionValidity(state, 'of-alice')).not.toBeNull()
    expect(log.patch('externalJwtSigner', 'of-logins', { enabled: false }).ok).toBe(true)
    expect(sessionValidity(state, 'of-alice')).toBeNull()
    expect(sessionValidity(state, 'of-admin')).not.toBeNull()
  })

  test('continue without rights below the feature level that ends such sessions, and end when that level is reached', () => {
    const { state, log } = withAlice()
    log.logIn('of-admin')
    expect(log.patch('externalJwtSigner', 'of-logins', { enabled: false }).ok).toBe(true)
    expect(alice(state).isHonored).toBe(false)
    raise(log, 1)
    expect(sessionValidity(state, 'of-alice')).not.toBeNull()
    raise(log, 2)
    expect(sessionValidity(state, 'of-alice')).toBeNull()
    expect(sessionValidity(state, 'of-admin')).not.toBeNull()
  })
})
