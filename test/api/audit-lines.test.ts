import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { createControllerLogWithSink } from '../../src/cli/controller/log.ts'
import { LineWriter } from '../../src/cli/terminal/line-writer.ts'
import { formatUuid, newUuidv7 } from '../../src/lib/text/uuid.ts'
import { newCa } from '../support/authorities.ts'
import { CallerOf, client, management } from './support/caller.ts'
import { admin, sessionCommand, user } from './support/controller.ts'
import { controllerForFile } from './support/for-file.ts'
import { made, newIdentity, newService, shown } from './support/network.ts'
import { eventually } from '../support/eventually.ts'

const { controller, root, sessionOf } = await controllerForFile()
const alice = sessionOf('alice-id')
const folder = mkdtempSync(join(tmpdir(), 'flotilla-audit-'))
const path = join(folder, 'log')
const fd = openSync(path, 'a')
const config = { id: 'ctrl1', logLevel: 'silent', audit: { log: true } } as const
controller.cluster.audit = createControllerLogWithSink(new LineWriter(fd), config).audit

afterAll(() => {
  closeSync(fd)
  rmSync(folder, { recursive: true, force: true })
})

type Line = Readonly<Record<string, unknown>>
const allLines = (): Line[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)

let before = 0
beforeEach(() => {
  before = allLines().length
})

/** Waits until this test has written this many lines, and returns them. */
async function lines(count: number): Promise<Line[]> {
  await eventually(() => expect(allLines().length).toBeGreaterThanOrEqual(before + count))
  const found = allLines().slice(before)
  expect(found).toHaveLength(count)
  return found
}

const sessionOfToken = (caller: CallerOf): string => (caller.token ?? '').split('.')[1] ?? ''
const byRoot = {
  id: 'ctrl1',
  audit: 'write',
  actor: 'admin-id',
  actorName: 'Default Admin',
  session: sessionOfToken(root),
  address: '127.0.0.1',
  outcome: 'done',
}

describe('an audit line of a write, on the controller that received it', () => {
  test('is written for a create, an update and a delete, and contains the names of the updated fields', async () => {
    const id = await newService(root, 'mail')
    const url = `${management}/services/${id}`
    const patch = { name: 'post', roleAttributes: ['new'], encryptionRequired: true }
    expect((await root.call('PATCH', url, patch)).status).toBe(200)
    expect((await root.call('DELETE', url)).status).toBe(200)
    const [created, updated, deleted] = await lines(3)
    expect(created).toMatchObject({ ...byRoot, action: 'create', entity: 'service', entityId: id })
    expect(updated).toMatchObject({ ...byRoot, action: 'patch', entityId: id })
    expect(updated?.['fields']).toEqual(expect.arrayContaining(['name', 'roleAttributes']))
    expect(updated?.['fields']).toHaveLength(2)
    expect(deleted).toMatchObject({ ...byRoot, action: 'delete', entityId: id, fields: [] })
    const index = Number(created?.['index'])
    expect([updated?.['index'], deleted?.['index']]).toEqual([index + 1, index + 2])
    expect(index + 2).toBe(controller.machine.appliedIndex)
    expect(JSON.stringify([created, updated, deleted])).not.toContain('post')
  })

  test('is written for a log-in', async () => {
    const caller = new CallerOf(controller)
    caller.address = '10.1.2.3'
    expect((await caller.logIn(user)).status).toBe(200)
    const [line] = await lines(1)
    expect(line).toMatchObject({
      audit: 'write',
      action: 'session-create',
      actor: 'alice-id',
      actorName: 'Alice',
      address: '10.1.2.3',
      outcome: 'done',
      entityId: sessionOfToken(caller),
    })
  })

  test('is written, with the error code, for a write that was refused when its log entry was applied', async () => {
    await newService(root, 'twice')
    const body = { name: 'twice', encryptionRequired: true }
    const reply = await root.call('POST', `${management}/services`, body)
    expect([reply.status, reply.body.error?.code]).toEqual([400, 'COULD_NOT_VALIDATE'])
    const [, refused] = await lines(2)
    expect(refused).toMatchObject({ ...byRoot, action: 'create', outcome: 'COULD_NOT_VALIDATE' })
  })

  test('is written once for two requests with the same request ID', async () => {
    const headers = { 'net-request-id': formatUuid(newUuidv7(controller.clock.nowMs())) }
    const body = { name: 'once', encryptionRequired: true }
    for (let i = 0; i < 2; i += 1) {
      const reply = await root.call('POST', `${management}/services`, body, headers)
      expect(reply.status, reply.text).toBe(201)
    }
    await newService(root, 'after')
    expect(await lines(2)).toMatchObject([{ action: 'create' }, { action: 'create' }])
  })

  test('is not written if another controller received the write', async () => {
    controller.cluster.apply(sessionCommand('elsewhere', 'alice-id'))
    await newService(root, 'here')
    expect(await lines(1)).toMatchObject([{ action: 'create', entity: 'service' }])
  })
})

describe('an audit line of a write that was refused before it reached the log', () => {
  test('is written if the caller is known but lacks the permission', async () => {
    const body = { name: 'not hers', encryptionRequired: true }
    expect((await alice.call('POST', `${management}/services`, body)).status).toBe(401)
    expect(await lines(1)).toMatchObject([
      {
        audit: 'refusal',
        actor: 'alice-id',
        actorName: 'Alice',
        address: '127.0.0.1',
        session: sessionOfToken(alice),
        operation: 'createService',
        outcome: 'UNAUTHORIZED',
      },
    ])
  })

  test('is written for a log-in with a wrong password, without the user name', async () => {
    const guess = { username: 'a password by mistake', password: 'guess' }
    expect((await new CallerOf(controller).logIn(guess)).status).toBe(401)
    const [line] = await lines(1)
    expect(line).toMatchObject({
      audit: 'refusal',
      actor: '',
      session: '',
      operation: 'authenticate',
      outcome: 'INVALID_AUTH',
      reason: 'USERNAME_UNKNOWN',
    })
    expect(JSON.stringify(line)).not.toMatch(/mistake|guess/)
  })

  test('contains the reason why a log-in was refused, although the response does not contain the reason', async () => {
    const url = `${client}/authenticate?method=cert`
    const without = await new CallerOf(controller).call('POST', url, {})
    const wrong = await new CallerOf(controller).logIn({ ...user, password: 'guess' })
    expect([without.body.error, wrong.body.error]).toEqual(
      Array.from({ length: 2 }, () => ({
        code: 'INVALID_AUTH',
        message: 'The authentication request failed',
        requestId: expect.any(String) as string,
      })),
    )
    expect(await lines(2)).toMatchObject([
      { outcome: 'INVALID_AUTH', reason: 'CERTIFICATE_MISSING' },
      { outcome: 'INVALID_AUTH', reason: 'PASSWORD_WRONG' },
    ])
  })

  test('is written for a log-in with an invalid token, without the token', async () => {
    const url = `${client}/authenticate?method=ext-jwt`
    const headers = { authorization: 'Bearer not.a.token' }
    const refused = await new CallerOf(controller).call('POST', url, {}, headers)
    expect(refused.status).toBe(401)
    const [line] = await lines(1)
    expect(line).toMatchObject({
      audit: 'refusal',
      actor: '',
      session: '',
      operation: 'authenticate',
      outcome: 'UNAUTHORIZED',
      reason: 'TOKEN_MALFORMED',
    })
    expect(JSON.stringify(line)).not.toContain('not.a.token')
  })

  test('is not written for an invalid body, a read, or a request without a token', async () => {
    const services = `${management}/services`
    expect((await root.call('POST', services, { name: 7 })).status).toBe(400)
    expect((await alice.get(services)).status).toBe(401)
    expect((await new CallerOf(controller).call('POST', services, {})).status).toBe(401)
    await newService(root, 'the next')
    expect(await lines(1)).toMatchObject([{ audit: 'write' }])
  })
})

describe('The log of a request with a trace context (the header traceparent)', () => {
  const traceId = 'e5'.repeat(16)
  const traceparent = (flags: string): Record<string, string> => ({
    traceparent: `00-${traceId}-${'f6'.repeat(8)}-${flags}`,
  })
  const services = `${management}/services`

  test('contains the trace ID if the request is traced and has a session, whether it succeeds or fails', async () => {
    expect((await root.get(services, traceparent('01'))).status).toBe(200)
    expect((await root.get(`${services}/nowhere`, traceparent('01'))).status).toBe(404)
    const ids = { traceId, parentSpanId: 'f6'.repeat(8), msg: 'request' }
    expect(await lines(2)).toMatchObject([
      { access: { method: 'GET', operation: 'listServices', status: 200 }, ...ids },
      { access: { method: 'GET', operation: 'detailService', status: 404 }, ...ids },
    ])
  })

  test('contains no trace line if the caller has no session or the trace context is not sampled; the audit line of a refused write contains the trace ID even if the context is not sampled', async () => {
    const stranger = new CallerOf(controller)
    expect((await stranger.get(`${client}/version`, traceparent('01'))).status).toBe(200)
    expect((await root.get(services, traceparent('00'))).status).toBe(200)
    const body = { name: 'not hers', encryptionRequired: true }
    expect((await alice.call('POST', services, body, traceparent('00'))).status).toBe(401)
    expect(await lines(1)).toMatchObject([{ audit: 'refusal', traceId }])
  })
})

test('no audit line contains a password, token, key or certificate', async () => {
  const secrets: string[] = [admin.password, user.password, String(root.token), String(alice.token)]
  const secret = (text: string): string => {
    secrets.push(text)
    return text
  }
  const identityId = await newIdentity(root, 'holder')
  const password = secret('the first of many')
  const credentials = { method: 'updb', username: 'holder', password }
  await made(root, `${management}/authenticators`, { identityId, ...credentials })
  const holder = new CallerOf(controller)
  expect((await holder.logIn({ username: 'holder', password }, client)).status).toBe(200)
  secrets.push(String(holder.token))
  const own = `${client}/current-identity/authenticators`
  const [authenticator] = (await holder.get(own)).body.data as { id: string }[]
  const ownUrl = `${own}/${authenticator?.id ?? ''}`
  const next = secret('the second of many')
  const wrong = { currentPassword: secret('not it at all'), password: next }
  expect((await holder.call('PATCH', ownUrl, wrong)).status).toBe(401)
  const right = { currentPassword: password, password: next }
  expect((await holder.call('PATCH', ownUrl, right)).status).toBe(200)
  expect((await holder.call('DELETE', `${client}/current-api-session`)).status).toBe(200)
  const third = secret('the third of many')
  const byAdmin = { username: 'holder', password: third }
  const url = `${management}/authenticators/${authenticator?.id ?? ''}`
  expect((await root.call('PATCH', url, byAdmin)).status).toBe(200)
  expect((await alice.call('PATCH', url, byAdmin)).status).toBe(401)
  const expiresAt = new Date(controller.clock.nowMs() + 3_600_000).toISOString()
  const another = await newIdentity(root, 'another', { enrollment: { ott: true } })
  const ott = { identityId, method: 'ott', expiresAt }
  const enrollmentId = await made(root, `${management}/enrollments`, ott)
  const enrollment = await shown(root, `${management}/enrollments/${enrollmentId}`)
  secrets.push(String(enrollment['token']), String(enrollment['jwt']))
  const owned = (await shown(root, `${management}/identities/${another}`))['enrollment'] as {
    ott: { token: string; jwt: string }
  }
  secrets.push(owned.ott.token, owned.ott.jwt)
  const { certificatePem } = await newCa('signer', controller.clock.nowMs())
  const signer = { name: 's', issuer: 'https://i.test', audience: 'secret audience', enabled: true }
  await made(root, `${management}/external-jwt-signers`, { ...signer, certPem: certificatePem })
  secrets.push('secret audience', certificatePem.split('\n')[1] ?? '', 'https://i.test')
  const ca = await newCa('ca', controller.clock.nowMs())
  const caId = await made(root, `${management}/cas`, {
    name: 'c',
    certPem: ca.certificatePem,
    identityRoles: [],
    isAuthEnabled: true,
    isAutoCaEnrollmentEnabled: false,
    isOttCaEnrollmentEnabled: false,
  })
  const { verificationToken } = await shown(root, `${management}/cas/${caId}`)
  secrets.push(String(verificationToken), ca.certificatePem.split('\n')[1] ?? '')
  await lines(12)
  const text = readFileSync(path, 'utf8')
  for (const one of secrets) {
    expect(one.length).toBeGreaterThan(5)
    expect(text, 'the log contains a secret').not.toContain(one)
  }
  expect(text).not.toMatch(/argon2|PRIVATE|BEGIN|eyJ/)
})
