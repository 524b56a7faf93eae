import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { unsetExternalIdClaim } from '../../src/entities/parts/ca-external-id-claim.ts'
import {
  AuthenticatorExtendSchema,
  AuthenticatorExtendVerifySchema,
  CaEnrollSchema,
  CaVerifySchema,
  CommandKind,
  EnrollSchema,
  RouterExtendSchema,
  SessionCertificateCreateSchema,
  SessionCertificateDeleteSchema,
  SessionCreateSchema,
} from '../../proto/gen/command_pb.ts'
import {
  authenticatorsPerIdentityMax,
  enrollmentTokenDigest,
} from '../../src/fsm/enrollment/enrollment.ts'
import { sessionCertificatesMax } from '../../src/fsm/enrollment/certificate.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import type { Outcome } from '../../src/ports/proposer.ts'
import { formedState, identity, type LogWriter, startMs } from './support/log.ts'

// Goal: the first command in the log uses the token; its results are in the same entry, or there
// are none.

const refusedWith = (code: string): object => ({ ok: false, code })
const print = (name: string): object => ({
  pem: `PEM of ${name}`,
  fingerprint: `print of ${name}`,
  publicKeyPrint: `key of ${name}`,
})

function outstanding(log: LogWriter, id: string, changes: JsonObject = {}): void {
  const made = { token: `token of ${id}`, jwt: 'j.w.t', expiresAt: startMs + 60_000 }
  const fields = { method: 'ott', identityId: 'i1', ...made, ...changes }
  expect(log.raw(CommandKind.ENTITY_CREATE, 'enrollment', id, fields)).toMatchObject({ ok: true })
}

type EnrollInit = MessageInitShape<typeof EnrollSchema>

function enroll(log: LogWriter, id: string, more: Partial<EnrollInit> = {}): Outcome | null {
  const message = create(EnrollSchema, {
    enrollmentId: id,
    token: `token of ${id}`,
    method: 'ott',
    authenticatorId: `a of ${id}`,
    credential: { case: 'certificate', value: print(id) },
    ...more,
  } as EnrollInit)
  return log.command(CommandKind.ENROLL, toBinary(EnrollSchema, message)).outcome
}

function newCa(log: LogWriter, more: JsonObject = {}): void {
  const made = log.raw(CommandKind.ENTITY_CREATE, 'ca', 'c1', {
    name: 'c1',
    certPem: 'PEM of c1',
    fingerprint: 'print of c1',
    verificationToken: 'verify c1',
    identityRoles: ['field'],
    isAuthEnabled: true,
    isAutoCaEnrollmentEnabled: true,
    isOttCaEnrollmentEnabled: true,
    ...more,
  })
  expect(made).toMatchObject({ ok: true })
  const payload = toBinary(CaVerifySchema, create(CaVerifySchema, { id: 'c1' }))
  expect(log.command(CommandKind.CA_VERIFY, payload).outcome).toMatchObject({ ok: true })
}

function formed(): ReturnType<typeof formedState> {
  const made = formedState()
  made.log.create('identity', 'i1', identity('ann'))
  return made
}

describe('the one-time enrollment token of an identity', () => {
  test('gives its identity a certificate and is deleted in the same log entry', () => {
    const { log, state } = formed()
    outstanding(log, 'e1')
    expect(enroll(log, 'e1')).toEqual({ ok: true, id: 'a of e1' })
    expect(state.get('enrollment', 'e1')).toBeUndefined()
    expect(state.get('authenticator', 'a of e1')).toMatchObject({
      method: 'cert',
      identityId: 'i1',
      fingerprint: 'print of e1',
      isIssuedByNetwork: true,
      enrolledBy: enrollmentTokenDigest('token of e1'),
    })
  })

  test('is accepted once, and is refused as unknown in every later request', () => {
    const { log, state } = formed()
    outstanding(log, 'e1')
    expect(enroll(log, 'e1')).toMatchObject({ ok: true })
    expect(enroll(log, 'e1', { authenticatorId: 'other' })).toMatchObject(
      refusedWith('INVALID_ENROLLMENT_TOKEN'),
    )
    expect(state.table('authenticator').indexes.ids('identityId', 'i1').size).toBe(1)
  })

  test('is invalid after a refresh, which creates a new valid token', () => {
    const { log, state } = formed()
    outstanding(log, 'e1')
    log.raw(CommandKind.ENTITY_PATCH, 'enrollment', 'e1', { token: 'fresh', jwt: 'n.e.w' })
    expect(enroll(log, 'e1')).toMatchObject(refusedWith('INVALID_ENROLLMENT_TOKEN'))
    expect(state.get('enrollment', 'e1')).toBeDefined()
    expect(enroll(log, 'e1', { token: 'fresh' })).toMatchObject({ ok: true })
  })

  test('is refused with the wrong enrollment method, and after its expiry in log time; a refused request does not use up the token', () => {
    const { log, state } = formed()
    outstanding(log, 'e1')
    expect(enroll(log, 'e1', { method: 'updb' })).toMatchObject(
      refusedWith('INVALID_ENROLL_METHOD'),
    )
    const password = { case: 'passwordHash', value: '$argon2id$' } as const
    expect(enroll(log, 'e1', { credential: password })).toMatchObject(
      refusedWith('INVALID_ENROLL_METHOD'),
    )
    log.timeMs = startMs + 60_000
    expect(enroll(log, 'e1')).toMatchObject(refusedWith('ENROLLMENT_EXPIRED'))
    expect(state.get('enrollment', 'e1')).toBeDefined()
    expect(state.table('authenticator').rows.size).toBe(1)
  })

  test('is not used up by a request with a certificate that is already in use', () => {
    const { log, state } = formed()
    outstanding(log, 'e1')
    enroll(log, 'e1')
    outstanding(log, 'e2')
    expect(enroll(log, 'e2', { credential: { case: 'certificate', value: print('e1') } })).toEqual(
      expect.objectContaining(refusedWith('CERT_IN_USE')),
    )
    expect(state.get('enrollment', 'e2')).toBeDefined()
  })

  test('for a password yields an authenticator with the user name in the enrollment, unless this user name is in use', () => {
    const { log, state } = formed()
    outstanding(log, 'e1', { method: 'updb', username: 'ann-lee' })
    const credential = { case: 'passwordHash', value: '$argon2id$x' } as const
    expect(enroll(log, 'e1', { method: 'updb', credential })).toMatchObject({ ok: true })
    expect(state.get('authenticator', 'a of e1')).toMatchObject({
      method: 'updb',
      username: 'ann-lee',
      passwordHash: '$argon2id$x',
    })
    log.create('identity', 'i2', identity('bob'))
    outstanding(log, 'e2', { identityId: 'i2', method: 'updb', username: 'ann-lee' })
    expect(enroll(log, 'e2', { method: 'updb', credential })).toMatchObject({
      ...refusedWith('COULD_NOT_VALIDATE'),
      fault: { field: 'username' },
    })
  })

  test('for a CA accepts only certificates that this CA issued, and only while ottca enrollment is enabled for the CA', () => {
    const { log, state } = formed()
    newCa(log)
    outstanding(log, 'e1', { method: 'ottca', caId: 'c1' })
    const method = 'ottca'
    expect(enroll(log, 'e1', { method })).toMatchObject(
      refusedWith('CERTIFICATE_FAILED_VALIDATION'),
    )
    const credential = { case: 'certificate', value: { ...print('e1'), caId: 'c1' } } as const
    log.raw(CommandKind.ENTITY_PATCH, 'ca', 'c1', { isOttCaEnrollmentEnabled: false })
    expect(enroll(log, 'e1', { method, credential })).toMatchObject(
      refusedWith('ENROLLMENT_CA_NOT_VALID'),
    )
    log.raw(CommandKind.ENTITY_PATCH, 'ca', 'c1', { isOttCaEnrollmentEnabled: true })
    expect(enroll(log, 'e1', { method, credential })).toMatchObject({ ok: true })
    expect(state.get('authenticator', 'a of e1')).toMatchObject({
      caId: 'c1',
      isIssuedByNetwork: false,
    })
  })

  test('is refused if the identity already has the maximum number of authenticators', () => {
    const { log } = formed()
    for (let at = 0; at < authenticatorsPerIdentityMax; at += 1) {
      outstanding(log, `e${at}`)
      expect(enroll(log, `e${at}`)).toMatchObject({ ok: true })
    }
    outstanding(log, 'last')
    expect(enroll(log, 'last')).toMatchObject(refusedWith('MAX_AUTHENTICATOR_METHODS_REACHED'))
  })
})

describe('a router that enrolls', () => {
  const certificates = (name: string): object => ({
    client: print(name),
    serverPem: `server PEM of ${name}`,
  })
  const router = (name: string) => ({ case: 'router', value: certificates(name) }) as const

  function extend(log: LogWriter, before: string, after: string): Outcome | null {
    const message = create(RouterExtendSchema, {
      routerId: 'r1',
      fingerprint: `print of ${before}`,
      certificates: certificates(after),
    })
    return log.command(CommandKind.ROUTER_EXTEND, toBinary(RouterExtendSchema, message)).outcome
  }

  test.each([
    ['edgeRouter', 'erott', 'edgeRouterId'],
    ['transitRouter', 'trott', 'transitRouterId'],
  ] as const)('as the kind %s with the method %s is verified afterwards', (kind, method, by) => {
    const { log, state } = formedState()
    log.create(kind, 'r1', { name: 'gate' })
    outstanding(log, 'e1', { method, [by]: 'r1', identityId: '' })
    expect(enroll(log, 'e1', { method, credential: router('r') })).toMatchObject({ ok: true })
    expect(state.get(kind, 'r1')).toMatchObject({
      isVerified: true,
      fingerprint: 'print of r',
      certPem: 'PEM of r',
    })
    expect(state.get('enrollment', 'e1')).toBeUndefined()
  })

  test('can extend its certificate only with the current certificate, which becomes invalid in the log entry of the extension', () => {
    const { log, state } = formedState()
    log.create('edgeRouter', 'r1', { name: 'gate' })
    outstanding(log, 'e1', { method: 'erott', edgeRouterId: 'r1', identityId: '' })
    expect(extend(log, 'first', 'second')).toMatchObject(refusedWith('UNAUTHORIZED'))
    enroll(log, 'e1', { method: 'erott', credential: router('first') })
    expect(extend(log, 'first', 'second')).toMatchObject({ ok: true })
    expect(extend(log, 'first', 'third')).toMatchObject(refusedWith('UNAUTHORIZED'))
    expect(state.get('edgeRouter', 'r1')).toMatchObject({ fingerprint: 'print of second' })
    log.raw(CommandKind.ENTITY_PATCH, 'edgeRouter', 'r1', { disabled: true })
    expect(extend(log, 'second', 'third')).toMatchObject(refusedWith('UNAUTHORIZED'))
  })
})

describe('a certificate of a verified CA', () => {
  let serial = 0
  function byCa(log: LogWriter, more: object = {}): Outcome | null {
    serial += 1
    const message = create(CaEnrollSchema, {
      caId: 'c1',
      identityId: `new ${serial}`,
      authenticatorId: `a ${serial}`,
      name: 'sensor',
      certificate: { ...print(`n${serial}`), caId: 'c1' },
      ...more,
    })
    return log.command(CommandKind.CA_ENROLL, toBinary(CaEnrollSchema, message)).outcome
  }

  test('creates an identity with the roles of the CA, and adds a number to the name if the name is in use', () => {
    const { log, state } = formedState()
    newCa(log)
    const names = [byCa(log), byCa(log), byCa(log)].map((outcome) => {
      expect(outcome).toMatchObject({ ok: true })
      const id = outcome?.ok === true ? outcome.id : ''
      expect(state.get('identity', id)).toMatchObject({
        typeId: 'Default',
        isAdmin: false,
        roleAttributes: ['field'],
      })
      expect(state.table('authenticator').indexes.ids('identityId', id).size).toBe(1)
      return state.get('identity', id)?.['name']
    })
    expect(names).toEqual(['sensor', 'sensor000001', 'sensor000002'])
  })

  test('creates no identity if an authenticator already has this certificate', () => {
    const { log, state } = formedState()
    newCa(log)
    byCa(log)
    const before = state.table('identity').rows.size
    const certificate = { ...print(`n${serial}`), caId: 'c1' }
    expect(byCa(log, { certificate })).toMatchObject(refusedWith('CERT_IN_USE'))
    expect(state.table('identity').rows.size).toBe(before)
  })

  test('is refused if the CA is not enabled for enrollment', () => {
    const { log } = formedState()
    newCa(log, { isAutoCaEnrollmentEnabled: false })
    expect(byCa(log)).toMatchObject(refusedWith('CERT_FAILED_VALIDATION'))
  })

  test('whose CA has an external ID claim enrolls an identity with this external ID, creates no authenticator, and enrolls only once', () => {
    const { log, state } = formedState()
    const externalIdClaim = { ...unsetExternalIdClaim, location: 'COMMON_NAME' }
    newCa(log, { externalIdClaim })
    expect(byCa(log)).toMatchObject(refusedWith('MISSING_CERT_CLAIM'))
    const outcome = byCa(log, { externalId: 'unit 7' })
    expect(outcome).toMatchObject({ ok: true })
    const id = outcome?.ok === true ? outcome.id : ''
    expect(state.get('identity', id)).toMatchObject({ externalId: 'unit 7' })
    expect(state.table('authenticator').indexes.ids('identityId', id).size).toBe(0)
    expect(byCa(log, { externalId: 'unit 7' })).toMatchObject(
      refusedWith('ENROLLMENT_IDENTITY_ALREADY_ENROLLED'),
    )
  })
})

describe('the certificate of an identity', () => {
  function enrolled(): ReturnType<typeof formedState> {
    const made = formed()
    outstanding(made.log, 'e1')
    expect(enroll(made.log, 'e1')).toMatchObject({ ok: true })
    return made
  }

  function session(log: LogWriter, id: string, fingerprint: string): Outcome | null {
    const message = create(SessionCreateSchema, {
      id,
      identityId: 'i1',
      authenticatorId: 'a of e1',
      certificate: { fingerprint },
    })
    return log.command(CommandKind.SESSION_CREATE, toBinary(SessionCreateSchema, message)).outcome
  }

  const extend = (log: LogWriter, before: string, after: string): Outcome | null => {
    const init = { id: 'a of e1', fingerprint: `print of ${before}`, certificate: print(after) }
    const message = create(AuthenticatorExtendSchema, init)
    const payload = toBinary(AuthenticatorExtendSchema, message)
    return log.command(CommandKind.AUTHENTICATOR_EXTEND, payload).outcome
  }
  const verify = (log: LogWriter, name: string): Outcome | null => {
    const init = { id: 'a of e1', fingerprint: `print of ${name}` }
    const message = create(AuthenticatorExtendVerifySchema, init)
    const payload = toBinary(AuthenticatorExtendVerifySchema, message)
    return log.command(CommandKind.AUTHENTICATOR_EXTEND_VERIFY, payload).outcome
  }

  test('stays valid during an extension until the new certificate is verified', () => {
    const { log, state } = enrolled()
    expect(session(log, 's1', 'print of e1')).toMatchObject({ ok: true })
    expect(verify(log, 'next')).toMatchObject(refusedWith('CAN_NOT_UPDATE_AUTHENTICATOR'))
    expect(extend(log, 'e1', 'next')).toMatchObject({ ok: true })
    expect(session(log, 's2', 'print of e1')).toMatchObject({ ok: true })
    expect(session(log, 's3', 'print of next')).toMatchObject(refusedWith('INVALID_AUTH'))
    expect(verify(log, 'e1')).toMatchObject(refusedWith('INVALID_CLIENT_CERT'))
    expect(verify(log, 'next')).toMatchObject({ ok: true })
    expect(session(log, 's4', 'print of e1')).toMatchObject(refusedWith('INVALID_AUTH'))
    expect(session(log, 's5', 'print of next')).toMatchObject({ ok: true })
    expect(state.get('apiSession', 's1')).toMatchObject({ certFingerprint: 'print of next' })
    expect(state.get('authenticator', 'a of e1')).toMatchObject({ lastExtendRolledKeys: true })
    expect(extend(log, 'e1', 'third')).toMatchObject(refusedWith('UNAUTHORIZED'))
  })

  test('opens no session if authentication is not enabled on its CA, and its sessions end if the CA is deleted', () => {
    const { log, state } = formed()
    newCa(log)
    log.raw(CommandKind.ENTITY_PATCH, 'identity', 'i1', { externalId: 'unit 7' })
    const logIn = (id: string, externalId: string): Outcome | null => {
      const certificate = { fingerprint: 'any', caId: 'c1', externalId }
      const message = create(SessionCreateSchema, { id, identityId: 'i1', certificate })
      return log.command(CommandKind.SESSION_CREATE, toBinary(SessionCreateSchema, message)).outcome
    }
    expect(logIn('s1', 'unit 8')).toMatchObject(refusedWith('INVALID_AUTH'))
    expect(logIn('s1', 'unit 7')).toMatchObject({ ok: true })
    log.raw(CommandKind.ENTITY_PATCH, 'ca', 'c1', { isAuthEnabled: false })
    expect(logIn('s2', 'unit 7')).toMatchObject(refusedWith('INVALID_AUTH'))
    log.raw(CommandKind.ENTITY_DELETE, 'ca', 'c1', {})
    expect(state.get('apiSession', 's1')).toBeUndefined()
  })

  test('that was issued for a session can be removed only through this session, and ends with it; the number per session is limited', () => {
    const { log, state } = enrolled()
    session(log, 's1', 'print of e1')
    session(log, 's2', 'print of e1')
    const make = (id: string, apiSessionId = 's1'): Outcome | null => {
      const message = create(SessionCertificateCreateSchema, {
        id,
        apiSessionId,
        certificate: print(id),
        subject: 'CN=i1',
        validFromMs: BigInt(startMs),
        validToMs: BigInt(startMs + 60_000),
      })
      const payload = toBinary(SessionCertificateCreateSchema, message)
      return log.command(CommandKind.SESSION_CERTIFICATE_CREATE, payload).outcome
    }
    const remove = (id: string, apiSessionId: string): Outcome | null => {
      const message = create(SessionCertificateDeleteSchema, { id, apiSessionId })
      const payload = toBinary(SessionCertificateDeleteSchema, message)
      return log.command(CommandKind.SESSION_CERTIFICATE_DELETE, payload).outcome
    }
    expect(make('k', 'gone')).toMatchObject(refusedWith('UNAUTHORIZED'))
    for (let at = 0; at < sessionCertificatesMax; at += 1) {
      expect(make(`k${at}`)).toMatchObject({ ok: true })
    }
    expect(make('more')).toMatchObject({ fault: { field: 'csr' } })
    expect(remove('k0', 's2')).toMatchObject(refusedWith('NOT_FOUND'))
    expect(remove('k0', 's1')).toMatchObject({ ok: true })
    expect(make('more')).toMatchObject({ ok: true })
    log.timeMs = startMs + 60_000
    expect(make('after the others have ended')).toMatchObject({ ok: true })
    expect(state.table('sessionCertificate').rows.size).toBe(1)
    log.raw(CommandKind.ENTITY_DELETE, 'authenticator', 'a of e1', {})
    expect(state.table('sessionCertificate').rows.size).toBe(0)
  })
})
