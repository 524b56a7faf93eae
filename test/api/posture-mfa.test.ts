import { expect, test } from 'vitest'
import { RouterClientAuthorizer } from '../../src/api/fabric/router-client-authorizer.ts'
import { createServices } from '../../src/api/services.ts'
import { newShortId } from '../../src/lib/random.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../src/pki/authority/certificate-request.ts'
import type { ClientAccessRequest } from '../../src/ports/router-clients.ts'
import { PROMPT_GRACE_MS } from '../../src/posture/factor-evaluation.ts'
import { type CallerOf, client, management, type Reply } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { type Authenticator, giveCode, mfaPath, turnOnMfa } from './support/mfa.ts'
import { made } from './support/network.ts'

const { controller, root, sessionOf } = await controllerForFile()

interface Person {
  readonly caller: CallerOf
  readonly id: string
  readonly serviceId: string
  readonly serviceName: string
  readonly routerId: string
  readonly app: Authenticator
}

function create(collection: string, body: object): Promise<string> {
  return made(root, `${management}/${collection}`, { name: newShortId(), ...body })
}

/**
 * An identity with MFA whose only service requires MFA, in a session in which no code was entered.
 */
async function behind(check: object): Promise<Person> {
  const mark = newShortId()
  const all = { semantic: 'AnyOf', identityRoles: [`#${mark}`], serviceRoles: [`#${mark}`] }
  const id = await create('identities', { type: 'User', isAdmin: false, roleAttributes: [mark] })
  const serviceName = `service ${mark}`
  const service = { name: serviceName, encryptionRequired: true, roleAttributes: [mark] }
  const serviceId = await create('services', service)
  await create('posture-checks', { typeId: 'MFA', ...check, roleAttributes: [mark] })
  await create('service-policies', { ...all, type: 'Dial', postureCheckRoles: [`#${mark}`] })
  const routerId = await create('edge-routers', {})
  const edgeRouterRoles = [`@${routerId}`]
  const { semantic, identityRoles, serviceRoles } = all
  await create('edge-router-policies', { semantic, identityRoles, edgeRouterRoles })
  await create('service-edge-router-policies', { semantic, serviceRoles, edgeRouterRoles })
  const app = await turnOnMfa(controller, sessionOf(id))
  return { caller: sessionOf(id), id, serviceId, serviceName, routerId, app }
}

function dial({ caller, serviceId }: Person): Promise<Reply> {
  return caller.call('POST', `${client}/sessions`, { serviceId })
}

async function query({ caller, serviceId }: Person): Promise<Record<string, unknown>> {
  const reply = await caller.get(`${client}/services/${serviceId}`)
  expect(reply.status, reply.text).toBe(200)
  const data = reply.body.data as {
    postureQueries: { postureQueries: Record<string, unknown>[] }[]
  }
  return data.postureQueries[0]?.postureQueries[0] ?? {}
}

function tell({ caller }: Person, endpoint: object): Promise<Reply> {
  const body = { id: '0', typeId: 'ENDPOINT_STATE', ...endpoint }
  return caller.call('POST', `${client}/posture-response`, body)
}

async function sessionsOf({ caller }: Person): Promise<number> {
  return ((await caller.get(`${client}/sessions`)).body.data as unknown[]).length
}

/** Runs the leader's periodic posture check, after the leader has led for long enough. */
async function sweep(): Promise<void> {
  controller.clock.advance(controller.parts.limits.postureGraceMs)
  controller.scheduler.run(controller.parts.limits.sweepMs)
  await Promise.resolve()
}

test('a TOTP code given in the session grants access to the service until the MFA timeout', async () => {
  const person = await behind({ timeoutSeconds: 600 })
  expect((await giveCode(person.caller, person.app.freshCode())).status).toBe(200)
  expect(await query(person)).toMatchObject({
    queryType: 'MFA',
    isPassing: true,
    timeout: 600,
    timeoutRemaining: 600,
    timeoutAt: new Date(controller.clock.nowMs() + 600_000).toISOString(),
  })
  expect((await dial(person)).status).toBe(201)
  const data = await root.get(`${management}/identities/${person.id}/posture-data`)
  const passed = { passedMfa: true, passedOnWake: true, passedOnUnlock: true }
  expect(JSON.stringify(data.body.data)).toContain(JSON.stringify(passed).slice(1, 17))
  controller.clock.advance(600_000)
  expect(await query(person)).toMatchObject({ isPassing: false, timeoutRemaining: 0 })
  const refused = await dial(person)
  expect([refused.status, refused.body.error?.code]).toEqual([409, 'INVALID_POSTURE'])
  await sweep()
  await sweep()
  await expect.poll(() => sessionsOf(person)).toBe(0)
  expect((await giveCode(person.caller, person.app.freshCode())).status).toBe(200)
  expect((await dial(person)).status).toBe(201)
})

test('a new leader ends sessions whose TOTP code has timed out, without waiting for the reports of devices', async () => {
  const { cluster, clock, scheduler, parts } = controller
  const person = await behind({ timeoutSeconds: 30 })
  await giveCode(person.caller, person.app.freshCode())
  expect((await dial(person)).status).toBe(201)
  const sweepAs = async (leader: string | null): Promise<void> => {
    cluster.leader = leader
    scheduler.run(parts.limits.sweepMs)
    for (let turn = 0; turn < 10; turn += 1) await new Promise((go) => setImmediate(go))
  }
  await sweepAs('ctrl2')
  await sweepAs(null)
  expect(await sessionsOf(person)).toBe(1)
  clock.advance(30_000)
  expect(30_000).toBeLessThan(parts.limits.postureGraceMs)
  await sweepAs(null)
  expect(await sessionsOf(person)).toBe(0)
})

test('the service-updates time (lastChangeAt) changes when the timeout of a TOTP code passes, and again when the next code is given', async () => {
  const person = await behind({ promptOnWake: true, timeoutSeconds: 600 })
  await giveCode(person.caller, person.app.freshCode())
  const marker = async (): Promise<string> => {
    const reply = await person.caller.get(`${client}/current-api-session/service-updates`)
    return (reply.body.data as { lastChangeAt: string }).lastChangeAt
  }
  const seen = [await marker()]
  const holds = async (afterMs: number, isSame: boolean): Promise<void> => {
    controller.clock.advance(afterMs)
    const now = await marker()
    expect(seen.includes(now), now).toBe(isSame)
    seen.push(now)
  }
  await holds(60_000, true)
  await tell(person, { woken: true, unlocked: false })
  await holds(0, false)
  await holds(PROMPT_GRACE_MS - 1, true)
  await holds(1, false)
  await giveCode(person.caller, person.app.freshCode())
  await holds(0, false)
  await holds(600_000 - 1, true)
  await holds(1, false)
})

test('after a device wakes, the response lists the services that require a new TOTP code within five minutes', async () => {
  const person = await behind({ promptOnWake: true, timeoutSeconds: 7200 })
  await giveCode(person.caller, person.app.freshCode())
  expect((await dial(person)).status).toBe(201)
  controller.clock.advance(1000)
  expect((await tell(person, { woken: false, unlocked: true })).body.data).toEqual({ services: [] })
  expect((await tell(person, { woken: true, unlocked: false })).body.data).toEqual({
    services: [
      {
        id: person.serviceId,
        name: person.serviceName,
        postureQueryType: 'MFA',
        timeout: 7200,
        timeoutRemaining: 300,
      },
    ],
  })
  expect(await query(person)).toMatchObject({ isPassing: true, timeoutRemaining: 300 })
  controller.clock.advance(PROMPT_GRACE_MS)
  expect(await query(person)).toMatchObject({ isPassing: false })
  expect((await dial(person)).body.error?.code).toBe('INVALID_POSTURE')
  expect((await giveCode(person.caller, person.app.freshCode())).status).toBe(200)
  expect(await query(person)).toMatchObject({ isPassing: true })
  expect((await dial(person)).status).toBe(201)
})

test('a TOTP code given in the session applies to dials at a router until the MFA timeout', async () => {
  const person = await behind({ timeoutSeconds: 600 })
  await giveCode(person.caller, person.app.freshCode())
  const { token } = (await dial(person)).body.data as { token: string }
  const csr = await createCertificateRequest({ privateKeyPem: generatePrivateKeyPem(), id: 'x' })
  const certificates = `${client}/current-api-session/certificates`
  const id = await made(person.caller, certificates, { csr })
  const shown = await person.caller.get(`${certificates}/${id}`)
  const { fingerprint } = shown.body.data as { fingerprint: string }
  const { parts, machine } = controller
  const clients = new RouterClientAuthorizer({ ...parts, ...createServices(parts) }, machine)
  const claim: ClientAccessRequest = {
    routerId: person.routerId,
    type: 'Dial',
    sessionToken: token,
    apiSessionToken: person.caller.token ?? '',
    fingerprints: [fingerprint],
  }
  expect(await clients.judge(claim)).toMatchObject({ ok: true })
  controller.clock.advance(600_000)
  expect(await clients.judge(claim)).toEqual({ ok: false, fault: 'posture' })
})

test('removing MFA immediately ends access that requires MFA', async () => {
  const person = await behind({})
  await giveCode(person.caller, person.app.freshCode())
  expect((await dial(person)).status).toBe(201)
  const headers = { 'mfa-validation-code': person.app.freshCode() }
  expect((await person.caller.call('DELETE', mfaPath, undefined, headers)).status).toBe(200)
  expect(await sessionsOf(person)).toBe(0)
  expect(await query(person)).toMatchObject({ isPassing: false })
})

test('after MFA was removed and enrolled again in one session, the other sessions of the identity are partially authenticated', async () => {
  const person = await behind({})
  const other = { ...person, caller: sessionOf(person.id) }
  await giveCode(person.caller, person.app.freshCode())
  const first = person.app.recoveryCodes[0] ?? ''
  await giveCode(other.caller, first)
  expect((await dial(other)).status).toBe(201)
  await root.call('DELETE', `${management}/identities/${person.id}/mfa`)
  const app = await turnOnMfa(controller, person.caller)
  expect(app.url).not.toBe(person.app.url)
  expect((await dial(person)).status).toBe(201)
  expect((await other.caller.get(`${client}/services`)).status).toBe(401)
})
