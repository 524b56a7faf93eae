import { unsetExternalIdClaim } from '../../src/entities/parts/ca-external-id-claim.ts'
import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import {
  AuthenticatorRequestExtendSchema,
  CaVerifySchema,
  CommandKind,
} from '../../proto/gen/command_pb.ts'
import {
  permissivePrimaryRules,
  permissiveSecondaryRules,
} from '../../src/entities/parts/auth-policy-factors.ts'
import { thirdPartyCasMax } from '../../src/fsm/enrollment/ca-rules.ts'
import { revocationLimits } from '../../src/fsm/sessions/revocation-rules.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import type { Outcome } from '../../src/ports/proposer.ts'
import { formedState, identity, type LogWriter, startMs } from './support/log.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'

const { ENTITY_CREATE, ENTITY_PATCH, ENTITY_REPLACE } = CommandKind
const refusedWith = (code: string, field?: string): object => ({
  ok: false,
  code,
  ...(field === undefined ? {} : { fault: { field } }),
})
const primary = permissivePrimaryRules as unknown as Readonly<Record<string, JsonObject>>
const secondary = permissiveSecondaryRules as unknown as JsonObject
const policy = (name: string): JsonObject => ({ name, primary, secondary })

function newSigner(log: LogWriter, id: string, more: JsonObject = {}): Outcome {
  const jwksEndpoint = 'https://a.test'
  const fields = { name: id, issuer: id, enabled: true, jwksEndpoint, ...more }
  return log.raw(ENTITY_CREATE, 'externalJwtSigner', id, fields)
}

function newCa(log: LogWriter, id: string, more: JsonObject = {}): Outcome {
  return log.raw(ENTITY_CREATE, 'ca', id, {
    name: id,
    certPem: `PEM of ${id}`,
    fingerprint: `print of ${id}`,
    verificationToken: `token of ${id}`,
    identityRoles: [],
    isAuthEnabled: true,
    isAutoCaEnrollmentEnabled: false,
    isOttCaEnrollmentEnabled: false,
    ...more,
  })
}

function verify(log: LogWriter, id: string): Outcome | null {
  const payload = toBinary(CaVerifySchema, create(CaVerifySchema, { id }))
  return log.command(CommandKind.CA_VERIFY, payload).outcome
}

function certificate(log: LogWriter, id: string, identityId: string, more: JsonObject): Outcome {
  const fields = { identityId, method: 'cert', certPem: `PEM of ${id}`, fingerprint: id, ...more }
  return log.raw(ENTITY_CREATE, 'authenticator', id, fields)
}

describe('a nested patch', () => {
  test('is merged with the current value when its log entry is applied, not when it is proposed', () => {
    const { log, state } = formedState()
    log.create('authPolicy', 'p', policy('p'))
    log.raw(ENTITY_PATCH, 'authPolicy', 'p', { primary: { updb: { maxAttempts: 3 } } })
    log.raw(ENTITY_PATCH, 'authPolicy', 'p', { primary: { updb: { minPasswordLength: 9 } } })
    expect(state.get('authPolicy', 'p')).toMatchObject({
      primary: { ...primary, updb: { ...primary['updb'], maxAttempts: 3, minPasswordLength: 9 } },
    })
  })

  test('is refused if the result is invalid, and then changes nothing', () => {
    const { log, state } = formedState()
    log.create('authPolicy', 'p', policy('p'))
    const before = state.get('authPolicy', 'p')
    for (const [field, change] of [
      ['primary', { primary: { updb: 7 } }],
      ['primary', { primary: { updb: { maxAttempts: null } } }],
      ['primary', { primary: { more: true } }],
      ['primary', { primary: { extJwt: { allowedSigners: [1] } } }],
      ['secondary', { secondary: { requireTotp: 'yes' } }],
      ['primary.updb.minPasswordLength', { primary: { updb: { minPasswordLength: 4 } } }],
      ['primary.updb.maxAttempts', { primary: { updb: { maxAttempts: -1 } } }],
      ['primary.updb.maxAttempts', { primary: { updb: { maxAttempts: 1.5 } } }],
    ] as [string, JsonObject][]) {
      expect(log.raw(ENTITY_PATCH, 'authPolicy', 'p', change)).toMatchObject(
        refusedWith('COULD_NOT_VALIDATE', field),
      )
    }
    expect(log.raw(ENTITY_PATCH, 'authPolicy', 'p', { primary: [] }).ok).toBe(false)
    expect(state.get('authPolicy', 'p')).toBe(before)
  })
})

describe('an auth policy', () => {
  test('is refused if it references a missing signer, and prevents the deletion of each signer that it references, even of one that it lists twice', () => {
    const { log, state } = formedState()
    newSigner(log, 's1')
    newSigner(log, 's2')
    const naming = (ids: string[]): JsonObject => ({ primary: { extJwt: { allowedSigners: ids } } })
    expect(log.raw(ENTITY_PATCH, 'authPolicy', 'default', naming(['s1', 'x']))).toMatchObject(
      refusedWith('NOT_FOUND', 'primary.extJwt.allowedExtJwtSigners[1]'),
    )
    const totp = { secondary: { requireExtJwtSigner: 'x' } }
    expect(log.raw(ENTITY_PATCH, 'authPolicy', 'default', totp)).toMatchObject(
      refusedWith('NOT_FOUND', 'secondary.requiredExtJwtSigner'),
    )
    log.raw(ENTITY_PATCH, 'authPolicy', 'default', naming(['s2', 's1', 's2']))
    for (const id of ['s1', 's2']) {
      expect(log.delete('externalJwtSigner', id)).toMatchObject(
        refusedWith('CAN_NOT_DELETE_REFERENCED_ENTITY', 'primary.extJwt.allowedSigners'),
      )
    }
    log.raw(ENTITY_REPLACE, 'authPolicy', 'default', policy('Default'))
    expect(log.delete('externalJwtSigner', 's1').ok).toBe(true)
    log.create('authPolicy', 'p', {
      ...policy('p'),
      secondary: { requireTotp: false, requireExtJwtSigner: 's2' },
    })
    expect(log.delete('externalJwtSigner', 's2').ok).toBe(false)
    expect(log.delete('authPolicy', 'p').ok).toBe(true)
    expect(log.delete('externalJwtSigner', 's2').ok).toBe(true)
    expect(state.table('externalJwtSigner').rows.size).toBe(0)
  })

  test('can be found by its allowed signers after a restart', () => {
    const { log, state } = formedState()
    newSigner(log, 's1')
    const naming = { primary: { extJwt: { allowedSigners: ['s1'] } } }
    log.raw(ENTITY_PATCH, 'authPolicy', 'default', naming)
    const again = new ClusterState()
    for (const { key, value } of state.takeDirty()) if (value !== null) again.load(key, value)
    again.loaded()
    expect(again.entitiesDigest()).toBe(state.entitiesDigest())
    expect([...again.table('authPolicy').indexes.ids('allowedSignerIds', 's1')]).toEqual([
      'default',
    ])
  })

  test('cannot be deleted if it is the default', () => {
    const { log } = formedState()
    expect(log.delete('authPolicy', 'default')).toMatchObject(
      refusedWith('CAN_NOT_DELETE_REFERENCED_ENTITY'),
    )
  })
})

describe('an external JWT signer', () => {
  test('is refused unless it has exactly one means of verification, even if a proposer accepted none or two', () => {
    const { log } = formedState()
    const none = newSigner(log, 's', { jwksEndpoint: null })
    expect(none).toMatchObject(refusedWith('COULD_NOT_VALIDATE', 'certPem'))
    const both = newSigner(log, 's', { certPem: 'PEM', kid: 'k', fingerprint: 'f' })
    expect(both).toMatchObject(refusedWith('COULD_NOT_VALIDATE', 'jwksEndpoint'))
    const bare = newSigner(log, 's', { certPem: 'PEM', jwksEndpoint: null })
    expect(bare).toMatchObject(refusedWith('COULD_NOT_VALIDATE', 'kid'))
  })

  test('that has neither a kid nor a certificate may exist together with other such signers', () => {
    const { log } = formedState()
    expect(newSigner(log, 's1').ok).toBe(true)
    expect(newSigner(log, 's2').ok).toBe(true)
  })
})

describe('a CA', () => {
  test('can be verified only by the command for verification, only once, and stays verified', () => {
    const { log, state } = formedState()
    newCa(log, 'c', { isVerified: true })
    expect(state.get('ca', 'c')).toMatchObject({ isVerified: false })
    log.raw(ENTITY_PATCH, 'ca', 'c', { isVerified: true })
    expect(state.get('ca', 'c')).toMatchObject({ isVerified: false })
    log.timeMs += 1000
    expect(verify(log, 'c')).toEqual({ ok: true, id: 'c' })
    expect(state.get('ca', 'c')).toMatchObject({ isVerified: true, updatedAt: startMs + 1000 })
    expect(verify(log, 'c')).toMatchObject(refusedWith('CA_ALREADY_VERIFIED'))
    expect(verify(log, 'x')).toMatchObject(refusedWith('NOT_FOUND'))
    log.raw(ENTITY_PATCH, 'ca', 'c', { isVerified: false })
    expect(state.get('ca', 'c')).toMatchObject({ isVerified: true })
  })

  test('that is deleted loses its certificate authenticators and their sessions; other authenticators and sessions remain', () => {
    const { log, state } = formedState()
    log.create('identity', 'i1', identity('ann'))
    log.create('identity', 'i2', identity('bob'))
    newCa(log, 'c')
    expect(certificate(log, 'a1', 'i1', { caId: 'c' })).toMatchObject(
      refusedWith('COULD_NOT_VALIDATE', 'certPem'),
    )
    verify(log, 'c')
    expect(certificate(log, 'a1', 'i1', { caId: 'c' }).ok).toBe(true)
    expect(certificate(log, 'a2', 'i2', {}).ok).toBe(true)
    log.logIn('s1', 'i1', 'a1')
    log.logIn('s2', 'i2', 'a2')
    expect(log.delete('ca', 'c').ok).toBe(true)
    expect([...state.table('authenticator').ids]).toEqual(['a2', 'admin-updb'])
    expect([...state.table('apiSession').ids]).toEqual(['s2'])
    expect(state.get('identity', 'i1')).toBeDefined()
  })

  test('is refused without a fingerprint, without a verification token, and above the maximum number of CAs', () => {
    const { log, state } = formedState()
    for (const missing of ['fingerprint', 'verificationToken']) {
      expect(newCa(log, 'c', { [missing]: '' })).toMatchObject(
        refusedWith('COULD_NOT_VALIDATE', 'certPem'),
      )
    }
    const base = { createdAt: 1, updatedAt: 1, revision: 1 }
    for (let at = 0; at < thirdPartyCasMax; at += 1) {
      state.put('ca', { ...base, id: `c${at}`, name: `n${at}`, fingerprint: `f${at}` })
    }
    expect(newCa(log, 'c')).toMatchObject(refusedWith('COULD_NOT_VALIDATE', 'certPem'))
    log.delete('ca', 'c0')
    expect(newCa(log, 'c').ok).toBe(true)
  })

  test('keeps its external ID claim unchanged if a patch would make the claim contradictory', () => {
    const { log, state } = formedState()
    const claim = { ...unsetExternalIdClaim, location: 'COMMON_NAME' }
    newCa(log, 'c', { externalIdClaim: claim })
    for (const [field, change] of [
      ['matcherCriteria', { matcher: 'PREFIX' }],
      ['matcher', { matcher: 'SCHEME', matcherCriteria: 'x' }],
      ['parserCriteria', { parser: 'SPLIT' }],
      ['index', { index: -1 }],
      ['location', { location: 7 }],
    ] as [string, JsonObject][]) {
      expect(log.raw(ENTITY_PATCH, 'ca', 'c', { externalIdClaim: change })).toMatchObject(
        refusedWith('COULD_NOT_VALIDATE', `externalIdClaim.${field}`),
      )
    }
    expect(state.get('ca', 'c')?.['externalIdClaim']).toEqual(claim)
    log.raw(ENTITY_PATCH, 'ca', 'c', { externalIdClaim: null })
    expect(state.get('ca', 'c')?.['externalIdClaim']).toBeNull()
  })
})

describe('a certificate authenticator', () => {
  test('requires a certificate and an unused fingerprint, and is refused for the identity of a router and for an identity that already has a certificate authenticator', () => {
    const { log, state } = formedState()
    expect(certificate(log, 'a', 'admin', { certPem: '' })).toMatchObject(
      refusedWith('COULD_NOT_VALIDATE', 'certPem'),
    )
    expect(certificate(log, 'a', 'admin', { fingerprint: null })).toMatchObject(
      refusedWith('COULD_NOT_VALIDATE', 'certPem'),
    )
    expect(certificate(log, 'a', 'admin', { caId: 'x' })).toMatchObject(refusedWith('NOT_FOUND'))
    expect(certificate(log, 'a', 'admin', {}).ok).toBe(true)
    expect(certificate(log, 'b', 'admin', {})).toMatchObject(
      refusedWith('MAX_AUTHENTICATOR_METHODS_REACHED'),
    )
    log.create('identity', 'i1', identity('ann'))
    expect(certificate(log, 'b', 'i1', { fingerprint: 'a' })).toMatchObject(
      refusedWith('COULD_NOT_VALIDATE', 'fingerprint'),
    )
    state.put('identity', { ...state.get('identity', 'i1'), id: 'i1', typeId: 'Router' })
    expect(certificate(log, 'b', 'i1', {})).toMatchObject(
      refusedWith('COULD_NOT_VALIDATE', 'identityId'),
    )
  })

  test('cannot have a user name and a password', () => {
    const { log } = formedState()
    certificate(log, 'a', 'admin', {})
    for (const change of [{ username: 'x' }, { passwordHash: 'y' }]) {
      expect(log.raw(ENTITY_PATCH, 'authenticator', 'a', change)).toMatchObject(
        refusedWith('CAN_NOT_UPDATE_AUTHENTICATOR'),
      )
    }
    expect(log.raw(ENTITY_PATCH, 'authenticator', 'a', { tags: { a: 1 } }).ok).toBe(true)
  })

  test('can be marked as due for an extension at the current log time, unlike a password authenticator', () => {
    const { log, state } = formedState()
    certificate(log, 'a', 'admin', {})
    const ask = (id: string, rollKeys: boolean): Outcome | null => {
      const message = create(AuthenticatorRequestExtendSchema, { id, rollKeys })
      const payload = toBinary(AuthenticatorRequestExtendSchema, message)
      return log.command(CommandKind.AUTHENTICATOR_REQUEST_EXTEND, payload).outcome
    }
    log.timeMs += 5
    expect(ask('a', true)).toEqual({ ok: true, id: 'a' })
    expect(state.get('authenticator', 'a')).toMatchObject({
      isExtendRequested: true,
      isKeyRollRequested: true,
      extendRequestedAt: startMs + 5,
    })
    expect(ask('admin-updb', true)).toMatchObject(refusedWith('CAN_NOT_UPDATE_AUTHENTICATOR'))
    expect(ask('x', true)).toMatchObject(refusedWith('NOT_FOUND'))
  })
})

describe('a posture check', () => {
  test('has the fields of its type, and keeps its type', () => {
    const { log, state } = formedState()
    const make = (fields: JsonObject): Outcome =>
      log.raw(ENTITY_CREATE, 'postureCheck', 'c', { name: 'c', ...fields })
    expect(make({ typeId: 'LUCK' })).toMatchObject(refusedWith('COULD_NOT_VALIDATE', 'typeId'))
    expect(make({})).toMatchObject(refusedWith('COULD_NOT_VALIDATE', 'typeId'))
    for (const [typeId, field] of [
      ['OS', 'operatingSystems'],
      ['DOMAIN', 'domains'],
      ['MAC', 'macAddresses'],
      ['PROCESS', 'process'],
      ['PROCESS_MULTI', 'processes'],
    ] as const) {
      expect(make({ typeId })).toMatchObject(refusedWith('COULD_NOT_VALIDATE', field))
    }
    expect(make({ typeId: 'DOMAIN', domains: ['a'] }).ok).toBe(true)
    const change = { typeId: 'MFA', domains: ['b'] }
    expect(log.raw(ENTITY_PATCH, 'postureCheck', 'c', change).ok).toBe(true)
    expect(state.get('postureCheck', 'c')).toMatchObject({ typeId: 'DOMAIN', domains: ['b'] })
    expect(log.raw(ENTITY_PATCH, 'postureCheck', 'c', { domains: [] }).ok).toBe(false)
  })
})

describe('Revocations of tokens', () => {
  test('expire by log time, and are removed when the next revocation is created', () => {
    const { log, state } = formedState()
    const revoke = (id: string): Outcome => log.create('revocation', id, { type: 'JTI', id })
    revoke('r1')
    log.timeMs += 1
    revoke('r2')
    const { lifetimeMs } = revocationLimits
    expect(state.get('revocation', 'r2')).toMatchObject({ expiresAt: startMs + 1 + lifetimeMs })
    log.timeMs = startMs + lifetimeMs
    revoke('r3')
    expect([...state.table('revocation').ids]).toEqual(['r2', 'r3'])
  })

  test.each([
    ['JTI', 91],
    ['API_SESSION', 1],
  ])('of the type %s are in force for %d days', (type, days) => {
    const { log, state } = formedState()
    log.raiseLevel()
    log.create('revocation', 'r1', { type, id: 'r1' })
    const lastMs = log.timeMs + days * 24 * 60 * 60_000
    expect(state.get('revocation', 'r1')).toMatchObject({ expiresAt: lastMs })
    log.timeMs = lastMs - 1
    log.create('revocation', 'r2', { type: 'API_SESSION', id: 'r2' })
    log.timeMs += 1
    log.create('revocation', 'r3', { type: 'API_SESSION', id: 'r3' })
    expect([...state.table('revocation').ids]).toEqual(['r2', 'r3'])
  })

  test('are limited in number', () => {
    const { log, state } = formedState()
    const base = { createdAt: 1, updatedAt: 1, revision: 1, type: 'JTI' }
    for (let at = 0; at < revocationLimits.revocationsMax; at += 1) {
      state.put('revocation', {
        ...base,
        id: `r${at}`,
        expiresAt: at === 0 ? startMs + 1 : startMs + 10,
      })
    }
    const revoke = (): Outcome => log.create('revocation', 'one', { type: 'JTI' })
    expect(revoke()).toMatchObject(refusedWith('SERVER_TOO_MANY_REQUESTS'))
    log.timeMs += 1
    expect(revoke().ok).toBe(true)
  })
})
