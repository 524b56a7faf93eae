import { inflateSync } from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { create, toBinary } from '@bufbuild/protobuf'
import { AdminRecoverSchema, CommandKind } from '../../proto/gen/command_pb.ts'
import { newShortId } from '../../src/lib/random.ts'
import { MFA_ENROLLMENT_CODE_REUSE_FEATURE_LEVEL } from '../../src/ports/feature-level.ts'
import { commandData } from '../support/commands.ts'
import { admin, startController } from './support/controller.ts'
import { CallerOf, client, fabric, management, type Reply } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import {
  type Authenticator,
  beginMfa,
  giveCode,
  type MfaDetail,
  mfaPath,
  turnOnMfa,
} from './support/mfa.ts'

const { controller, root, sessionOf } = await controllerForFile()
const session = `${client}/current-api-session`

let identityId = ''
let alice = new CallerOf(controller)

beforeEach(async () => {
  const body = { name: newShortId(), type: 'User', isAdmin: false }
  const reply = await root.call('POST', `${management}/identities`, body)
  identityId = (reply.body.data as { id: string }).id
  alice = sessionOf(identityId)
})

function codeOf(reply: Reply): string {
  return reply.body.error?.code ?? `${reply.status}`
}

async function isFull(caller: CallerOf): Promise<boolean> {
  return (await caller.get(`${client}/current-identity`)).status === 200
}

async function isMfaEnabled(): Promise<unknown> {
  const reply = await root.get(`${management}/identities/${identityId}`)
  return (reply.body.data as Record<string, unknown>)['isMfaEnabled']
}

describe('an MFA enrollment', () => {
  test('returns 404 if the enrollment does not exist', async () => {
    expect((await alice.get(mfaPath)).status).toBe(404)
    expect((await alice.get(`${mfaPath}/qr-code`)).status).toBe(404)
    expect((await alice.call('DELETE', mfaPath)).status).toBe(404)
    const code = { code: '123456' }
    expect((await alice.call('POST', `${mfaPath}/verify`, code)).status).toBe(404)
    expect((await alice.call('POST', `${mfaPath}/recovery-codes`, code)).status).toBe(404)
    expect((await alice.call('GET', `${mfaPath}/recovery-codes`, code)).status).toBe(404)
    expect(codeOf(await giveCode(alice, '123456'))).toBe('MFA_NOT_ENROLLED')
  })

  test('shows its secret and recovery codes after its start, and does not affect sessions', async () => {
    const begun = await alice.call('POST', mfaPath)
    expect(begun.body.data).toMatchObject({ _links: { self: { href: './current-identity/mfa' } } })
    const { body } = await alice.get(mfaPath)
    const detail = body.data as MfaDetail & { readonly _links: object }
    expect(detail.isVerified).toBe(false)
    expect(detail.provisioningUrl).toMatch(
      /^otpauth:\/\/totp\/Flotilla:[^?]+\?issuer=Flotilla&secret=[A-Z2-7]{32}$/,
    )
    expect(new Set(detail.recoveryCodes).size).toBe(20)
    for (const code of detail.recoveryCodes ?? []) expect(code).toMatch(/^[A-Z][A-Z2-7]{5}$/)
    expect(Object.keys(detail._links).sort()).toEqual(['current-identity', 'qr', 'self', 'verify'])
    expect(await isMfaEnabled()).toBe(false)
    expect(await isFull(alice)).toBe(true)
    expect(codeOf(await giveCode(alice, '123456'))).toBe('MFA_NOT_ENROLLED')
  })

  test('has a QR code that contains its provisioning URL, until it is verified', async () => {
    const app = await beginMfa(controller, alice)
    const answer = await controller.app.inject({
      url: `${mfaPath}/qr-code`,
      headers: { 'net-session': alice.token ?? '', accept: 'application/json' },
    })
    expect(answer.statusCode).toBe(200)
    expect(answer.headers['content-type']).toBe('image/png')
    const png = answer.rawPayload
    expect(png.subarray(1, 4).toString()).toBe('PNG')
    const width = png.readUInt32BE(16)
    expect(width).toBe(png.readUInt32BE(20))
    expect(width).toBeGreaterThan(180)
    expect(width).toBeLessThanOrEqual(256)
    const at = png.indexOf('IDAT') + 4
    expect(inflateSync(png.subarray(at)).length).toBe(width * (1 + Math.ceil(width / 8)))
    await alice.call('POST', `${mfaPath}/verify`, { code: app.code() })
    expect((await alice.get(`${mfaPath}/qr-code`)).status).toBe(404)
  })

  test('can be started again with a new secret, or deleted without a code, until it is verified', async () => {
    const first = await beginMfa(controller, alice)
    const second = await beginMfa(controller, alice)
    expect(second.url).not.toBe(first.url)
    const old = await alice.call('POST', `${mfaPath}/verify`, { code: first.code() })
    expect(codeOf(old)).toBe('MFA_INVALID_TOKEN')
    expect((await alice.call('DELETE', mfaPath)).status).toBe(200)
    expect((await alice.get(mfaPath)).status).toBe(404)
    await beginMfa(controller, alice)
    const anyCode = { 'mfa-validation-code': 'whatever' }
    expect((await alice.call('DELETE', mfaPath, undefined, anyCode)).status).toBe(200)
  })

  test('is verified by a time-based code, not by a recovery code, and does not show its secrets afterwards', async () => {
    const app = await beginMfa(controller, alice)
    const [recovery = ''] = app.recoveryCodes
    for (const code of [recovery, app.wrongCode(), app.code(-2), app.code(2), '', '0'.repeat(64)]) {
      const refused = await alice.call('POST', `${mfaPath}/verify`, { code })
      expect([refused.status, codeOf(refused)]).toEqual([400, 'MFA_INVALID_TOKEN'])
    }
    const verified = await alice.call('POST', `${mfaPath}/verify`, { code: app.code(1) })
    expect([verified.status, verified.body.data]).toEqual([200, {}])
    expect(await isMfaEnabled()).toBe(true)
    const { data } = (await alice.get(mfaPath)).body
    expect(data).toMatchObject({ isVerified: true, _links: { 'recovery-codes': {} } })
    expect(data).not.toHaveProperty('provisioningUrl')
    expect(data).not.toHaveProperty('recoveryCodes')
    const again = await alice.call('POST', `${mfaPath}/verify`, { code: app.freshCode() })
    expect(again.status).toBe(404)
    expect(codeOf(await alice.call('POST', mfaPath))).toBe('MFA_EXISTS')
    expect((await alice.call('POST', mfaPath)).status).toBe(409)
  })

  test('can be deleted after its verification only with a time-based code or a recovery code', async () => {
    for (const pick of [
      (app: Authenticator) => app.freshCode(),
      (app: Authenticator) => app.recoveryCodes[7] ?? '',
    ]) {
      const app = await turnOnMfa(controller, alice)
      for (const code of ['', app.wrongCode()]) {
        const headers: Record<string, string> = code === '' ? {} : { 'mfa-validation-code': code }
        const refused = await alice.call('DELETE', mfaPath, undefined, headers)
        expect([refused.status, codeOf(refused)]).toEqual([400, 'MFA_INVALID_TOKEN'])
      }
      const headers = { 'mfa-validation-code': pick(app) }
      expect((await alice.call('DELETE', mfaPath, undefined, headers)).status).toBe(200)
      expect(await isMfaEnabled()).toBe(false)
      const shown = (await alice.get(session)).body.data
      expect(shown).toMatchObject({ isMfaRequired: false, isMfaComplete: false, authQueries: [] })
    }
  })
})

describe('a session', () => {
  test('whose identity has MFA is partially authenticated until it gets a code, unless the MFA was enrolled in this session', async () => {
    const other = sessionOf(identityId)
    const app = await turnOnMfa(controller, alice)
    expect(await isFull(alice)).toBe(true)
    expect(await isFull(other)).toBe(false)
    const later = sessionOf(identityId)
    const { data } = (await later.get(session)).body
    const authQueries = [expect.objectContaining({ typeId: 'MFA', isTotpEnrolled: true })]
    expect(data).toMatchObject({ isMfaRequired: true, isMfaComplete: false, authQueries })
    const given = await giveCode(later, app.freshCode())
    expect([given.status, given.body.data]).toEqual([200, {}])
    const full = { isMfaRequired: true, isMfaComplete: true, authQueries: [] }
    expect((await later.get(session)).body.data).toMatchObject(full)
    expect(await isFull(later)).toBe(true)
    expect(await isFull(other)).toBe(false)
    const { id } = (await later.get(session)).body.data as { id: string }
    const listed = await root.get(
      `${management}/api-sessions?filter=${encodeURIComponent(`mfaComplete = true and id = "${id}"`)}`,
    )
    expect(listed.body.meta?.pagination?.totalCount).toBe(1)
  })

  test('becomes fully authenticated with a recovery code; each recovery code works once', async () => {
    const app = await turnOnMfa(controller, alice)
    const [first = '', second = ''] = app.recoveryCodes
    expect((await giveCode(sessionOf(identityId), first)).status).toBe(200)
    expect(codeOf(await giveCode(sessionOf(identityId), first))).toBe('MFA_INVALID_TOKEN')
    expect(codeOf(await giveCode(sessionOf(identityId), second.toLowerCase()))).toBe(
      'MFA_INVALID_TOKEN',
    )
    expect((await giveCode(sessionOf(identityId), second)).status).toBe(200)
  })

  test('accepts a code of an adjacent time step, but neither a used code nor a code that is older than a used one', async () => {
    const app = await turnOnMfa(controller, alice)
    expect((await giveCode(alice, app.code(1))).status).toBe(200)
    expect(codeOf(await giveCode(sessionOf(identityId), app.code(1)))).toBe('MFA_INVALID_TOKEN')
    expect(codeOf(await giveCode(alice, app.code()))).toBe('MFA_INVALID_TOKEN')
    for (const _step of [1, 2, 3]) app.freshCode()
    expect((await giveCode(alice, app.code(-1))).status).toBe(200)
    expect(codeOf(await giveCode(alice, app.code(-2)))).toBe('MFA_INVALID_TOKEN')
  })

  test('accepts the code that has verified the MFA enrollment, unless another session of the identity has already used this code', async () => {
    const app = await turnOnMfa(controller, alice)
    const [next, another] = [sessionOf(identityId), sessionOf(identityId)]
    expect((await giveCode(next, app.code())).status).toBe(200)
    expect(codeOf(await giveCode(another, app.code()))).toBe('MFA_INVALID_TOKEN')
  })

  test('accepts its last accepted code again, and keeps the time at which it first accepted this code', async () => {
    const app = await turnOnMfa(controller, alice)
    const code = app.freshCode()
    expect((await giveCode(alice, code)).status).toBe(200)
    const { id } = (await alice.get(session)).body.data as { id: string }
    const passedAt = controller.state.get('apiSession', id)?.mfaPassedAt
    controller.clock.advance(1000)
    expect((await giveCode(alice, code)).status).toBe(200)
    expect(controller.state.get('apiSession', id)?.mfaPassedAt).toBe(passedAt)
    const headers = { 'mfa-validation-code': code }
    expect(codeOf(await alice.call('DELETE', mfaPath, undefined, headers))).toBe(
      'MFA_INVALID_TOKEN',
    )
  })

  test('refuses the code that verified its MFA enrollment while the cluster has the previous feature level', async () => {
    const former = await startController(
      {},
      undefined,
      {},
      MFA_ENROLLMENT_CODE_REUSE_FEATURE_LEVEL - 1,
    )
    const user = new CallerOf(former)
    user.token = former.openSession('alice-id')
    const app = await turnOnMfa(former, user)
    expect(codeOf(await giveCode(user, app.code()))).toBe('MFA_INVALID_TOKEN')
    await former.close()
  })

  test('can enroll in MFA and becomes fully authenticated by this if the auth policy requires a code', async () => {
    const { primary } = (await root.get(`${management}/auth-policies/default`)).body.data as {
      primary: object
    }
    const body = { name: newShortId(), primary, secondary: { requireTotp: true } }
    const policy = await root.call('POST', `${management}/auth-policies`, body)
    const { id: authPolicyId } = policy.body.data as { id: string }
    await root.call('PATCH', `${management}/identities/${identityId}`, { authPolicyId })
    expect(await isFull(alice)).toBe(false)
    const app = await turnOnMfa(controller, alice)
    expect(await isFull(alice)).toBe(true)
    const removal = { 'mfa-validation-code': app.freshCode() }
    expect((await alice.call('DELETE', mfaPath, undefined, removal)).status).toBe(200)
    expect(await isFull(alice)).toBe(false)
    expect((await alice.get(session)).body.data).toMatchObject({
      authQueries: [expect.objectContaining({ isTotpEnrolled: false })],
    })
  })

  test('cannot exchange a code for tokens, which only an OIDC session can do', async () => {
    const reply = await alice.call('POST', `${session}/totp-token`, { code: '123456' })
    expect([reply.status, codeOf(reply)]).toEqual([400, 'INVALID_BACKING_TOKEN_TYPE'])
  })
})

describe('recovery codes', () => {
  const path = `${mfaPath}/recovery-codes`

  async function left(app: Authenticator): Promise<readonly string[]> {
    const reply = await alice.call('GET', path, { code: app.freshCode() })
    expect(reply.status, reply.text).toBe(200)
    return (reply.body.data as { recoveryCodes: string[] }).recoveryCodes
  }

  test('are shown after a time-based code in the body or the header, but not after a recovery code', async () => {
    const app = await turnOnMfa(controller, alice)
    const [used = '', other = ''] = app.recoveryCodes
    expect((await giveCode(alice, used)).status).toBe(200)
    expect(await left(app)).toEqual(app.recoveryCodes.slice(1))
    const byHeader = await alice.get(path, { 'mfa-validation-code': app.freshCode() })
    expect(byHeader.status, byHeader.text).toBe(200)
    for (const code of [other, app.wrongCode(), app.code(-2)]) {
      expect(codeOf(await alice.get(path, { 'mfa-validation-code': code }))).toBe(
        'MFA_INVALID_TOKEN',
      )
    }
    expect(codeOf(await alice.get(path))).toBe('MFA_INVALID_TOKEN')
  })

  test('are all replaced by new ones after a time-based code or a recovery code', async () => {
    const app = await turnOnMfa(controller, alice)
    const renewed = await alice.call('POST', path, { code: app.freshCode() })
    expect([renewed.status, renewed.body.data]).toEqual([200, {}])
    const codes = await left(app)
    expect(codes).toHaveLength(20)
    expect(codes.filter((code) => app.recoveryCodes.includes(code))).toEqual([])
    expect(codeOf(await giveCode(alice, app.recoveryCodes[3] ?? ''))).toBe('MFA_INVALID_TOKEN')
    expect((await alice.call('POST', path, { code: codes[0] })).status).toBe(200)
    const others = await left(app)
    expect(others).toHaveLength(20)
    expect(codeOf(await alice.call('POST', path, { code: codes[1] }))).toBe('MFA_INVALID_TOKEN')
    expect((await giveCode(alice, others[0] ?? '')).status).toBe(200)
  })

  test('cannot be read while the MFA enrollment is unverified: the response is 404', async () => {
    const app = await beginMfa(controller, alice)
    expect((await alice.call('GET', path, { code: app.code() })).status).toBe(404)
    expect((await alice.call('POST', path, { code: app.code() })).status).toBe(404)
  })
})

describe('wrong MFA codes', () => {
  test('cause a pause of 30 seconds after the tenth and of 60 seconds after the eleventh; right codes are refused during a pause, and the first right code after it resets the count', async () => {
    const app = await turnOnMfa(controller, alice)
    const partial = sessionOf(identityId)
    for (let guess = 1; guess <= 10; guess += 1) {
      expect((await giveCode(partial, app.wrongCode())).status).toBe(400)
    }
    const paused = await giveCode(partial, app.code(1))
    expect([paused.status, codeOf(paused)]).toEqual([429, 'SERVER_TOO_MANY_REQUESTS'])
    expect(paused.headers['retry-after']).toBe('30')
    controller.clock.advance(30_000)
    expect((await giveCode(partial, app.wrongCode())).status).toBe(400)
    controller.clock.advance(30_000)
    const longer = await giveCode(partial, app.code())
    expect([longer.status, longer.headers['retry-after']]).toEqual([429, '30'])
    controller.clock.advance(30_000)
    expect((await giveCode(partial, app.code())).status).toBe(200)
    expect((await giveCode(partial, app.wrongCode())).status).toBe(400)
    expect((await giveCode(partial, app.code(1))).status).toBe(200)
  })
})

describe('an administrator who manages MFA of other identities', () => {
  test('can remove MFA from an identity, verified or not; the identity’s sessions then require no code', async () => {
    const url = `${management}/identities/${identityId}/mfa`
    expect((await root.call('DELETE', url)).status).toBe(200)
    await beginMfa(controller, alice)
    expect((await root.call('DELETE', url)).status).toBe(200)
    expect((await alice.get(mfaPath)).status).toBe(404)
    await turnOnMfa(controller, alice)
    const later = sessionOf(identityId)
    expect(await isFull(later)).toBe(false)
    expect((await root.call('DELETE', url)).status).toBe(200)
    expect(await isFull(later)).toBe(true)
    expect(await isMfaEnabled()).toBe(false)
    const nobody = await root.call('DELETE', `${management}/identities/nobody/mfa`)
    expect(nobody.status).toBe(404)
  })

  test('sees the number of MFA enrollments in the summary, but none of their secrets', async () => {
    const app = await turnOnMfa(controller, alice)
    const summary = (await root.get(`${management}/summary`)).body.data as Record<string, number>
    expect(summary['mfas']).toBeGreaterThan(0)
    const identity = await root.get(`${management}/identities/${identityId}`)
    const filter = encodeURIComponent(`entityId = "${identityId}"`)
    const audit = await root.get(`${fabric}/audit?limit=500&filter=${filter}`)
    expect(audit.text).toContain('"mfa"')
    for (const { status, text } of [identity, audit]) {
      expect(status).toBe(200)
      expect(text).not.toContain(new URL(app.url).searchParams.get('secret'))
      expect(text).not.toContain(app.recoveryCodes[0])
    }
  })
})

test('recovering an administrator on the controller’s host also removes the administrator’s MFA', async () => {
  const boss = sessionOf('admin-id')
  await turnOnMfa(controller, boss)
  expect(await isFull(root)).toBe(false)
  const passwordHash = controller.state.get('authenticator', 'admin-updb')?.['passwordHash']
  const message = create(AdminRecoverSchema, { name: '', passwordHash: String(passwordHash) })
  const payload = toBinary(AdminRecoverSchema, message)
  expect(controller.cluster.apply(commandData(CommandKind.ADMIN_RECOVER, payload)).outcome.ok).toBe(
    true,
  )
  const again = new CallerOf(controller)
  expect((await again.logIn(admin)).status).toBe(200)
  expect(await isFull(again)).toBe(true)
  root.token = again.token
})

test('the stored MFA factor and the log contain neither its secret nor its codes in plaintext', async () => {
  const app = await turnOnMfa(controller, alice)
  const log = Buffer.concat(controller.cluster.entries.map(({ data }) => Buffer.from(data)))
  const record = JSON.stringify(controller.state.get('mfa', identityId))
  const secret = new URL(app.url).searchParams.get('secret') ?? ''
  for (const text of [secret, ...app.recoveryCodes]) {
    expect(log.includes(text)).toBe(false)
    expect(record.includes(text)).toBe(false)
  }
})
