import { beforeEach, describe, expect, test } from 'vitest'

import { RouterClientAuthorizer } from '../../src/api/fabric/router-client-authorizer.ts'
import { createServices } from '../../src/api/services.ts'
import type { ClientAccessRequest, ClientAccessDecision } from '../../src/ports/router-clients.ts'
import type { CommandWriter } from '../../src/ports/writer.ts'
import { type CallerOf, client, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { claimsOf, made, newIdentity } from '../api/support/network.ts'
import { certificateBy } from '../api/support/oidc-device.ts'

// The attack: a client, or a stolen router that has received its tokens, uses the token of a
// service session that has ended to get access that the current policies, posture or sessions do
// not grant, or to fill the log.

const REOPENS_MAX = 5
const { controller, root, sessionOf } = await controllerForFile({
  sessionReopensMax: REOPENS_MAX,
  sessionReopensInAllMax: 1000,
})
const { parts, machine, clock } = controller
const deps = { ...parts, ...createServices(parts) }
const clients = new RouterClientAuthorizer(deps, machine)

interface Stage {
  readonly caller: CallerOf
  readonly identityId: string
  readonly serviceId: string
  readonly routerId: string
  readonly dialId: string
  readonly waysId: string
  readonly sessionId: string
  readonly claim: ClientAccessRequest
}

let serial = 0
let stage: Stage

async function newClaim(
  caller: CallerOf,
  routerId: string,
  serviceId: string,
): Promise<ClientAccessRequest> {
  const reply = await caller.call('POST', `${client}/sessions`, { serviceId, type: 'Dial' })
  expect(reply.status, reply.text).toBe(201)
  const { token } = reply.body.data as { token: string }
  const fingerprint = await certificateBy((method, path, body) =>
    caller.call(method, client + path, body),
  )
  const apiSessionToken = caller.token ?? ''
  const fingerprints = [fingerprint]
  return { routerId, sessionToken: token, apiSessionToken, fingerprints, type: 'Dial' }
}

/** A client with a service session that permits it to dial. */
beforeEach(async () => {
  serial += 1
  const mark = `m${serial}`
  const create = (kind: string, body: object): Promise<string> =>
    made(root, `${management}/${kind}`, { name: mark, ...body })
  const of = { semantic: 'AnyOf', identityRoles: [`#${mark}`], serviceRoles: [`#${mark}`] }
  const { semantic, identityRoles, serviceRoles } = of
  const identityId = await newIdentity(root, mark, { roleAttributes: [mark] })
  const serviceId = await create('services', { encryptionRequired: true, roleAttributes: [mark] })
  const routerId = await create('edge-routers', {})
  const edgeRouterRoles = [`@${routerId}`]
  const dialId = await create('service-policies', { ...of, type: 'Dial' })
  const ways = { semantic, serviceRoles, edgeRouterRoles }
  const waysId = await create('service-edge-router-policies', ways)
  await create('edge-router-policies', { semantic, identityRoles, edgeRouterRoles })
  const caller = sessionOf(identityId)
  const claim = await newClaim(caller, routerId, serviceId)
  const sessionId = String(claimsOf(claim.sessionToken).jti)
  stage = { caller, identityId, serviceId, routerId, dialId, waysId, sessionId, claim }
})

const judged = (changes: Partial<ClientAccessRequest> = {}): Promise<ClientAccessDecision> =>
  clients.judge({ ...stage.claim, ...changes })
const refusedBy = (fault: string): object => ({ ok: false, fault })

async function patch(path: string, body: object): Promise<void> {
  const reply = await root.call('PATCH', `${management}/${path}`, body)
  expect(reply.status, reply.text).toBe(200)
}

async function remove(path: string): Promise<void> {
  const reply = await root.call('DELETE', `${management}/${path}`)
  expect(reply.status, reply.text).toBe(200)
}

const revoke = (): Promise<void> => patch(`service-policies/${stage.dialId}`, { identityRoles: [] })
const grant = (): Promise<void> =>
  patch(`service-policies/${stage.dialId}`, { identityRoles: [`@${stage.identityId}`] })

/** Ends the service session; its API session and all permissions stay. */
async function endSession(): Promise<void> {
  await revoke()
  await grant()
  expect(machine.get('session', stage.sessionId)).toBeUndefined()
}

describe('the token of a service session that has ended', () => {
  test('opens a session with the same ID for a dial once the client has access again', async () => {
    await endSession()
    const { identityId, serviceId, sessionId } = stage
    expect(await judged()).toMatchObject({ ok: true, client: { identityId, serviceId, sessionId } })
    expect(machine.get('session', sessionId)).toMatchObject({ identityId, serviceId, type: 'Dial' })
  })

  test('opens a session for a dial even after its own session was deleted, because the client may request another session anyway', async () => {
    await remove(`sessions/${stage.sessionId}`)
    expect(await judged()).toMatchObject({ ok: true, client: { sessionId: stage.sessionId } })
  })

  test('makes a dial use the session that the client has opened in the meantime', async () => {
    await endSession()
    const other = await newClaim(stage.caller, stage.routerId, stage.serviceId)
    const sessionId = String(claimsOf(other.sessionToken).jti)
    expect(await judged()).toMatchObject({ ok: true, client: { sessionId } })
    expect(machine.get('session', stage.sessionId)).toBeUndefined()
  })

  test('grants no access without a policy, and causes no log entry', async () => {
    await revoke()
    const { appliedIndex } = machine
    expect(await judged()).toEqual(refusedBy('access'))
    expect(machine.appliedIndex).toBe(appliedIndex)
  })

  test('grants nothing at a router that no policy permits the service to use', async () => {
    await endSession()
    await remove(`service-edge-router-policies/${stage.waysId}`)
    expect(await judged()).toEqual(refusedBy('router'))
  })

  test('grants nothing while a posture check of the client fails', async () => {
    const body = { name: `at work ${serial}`, typeId: 'DOMAIN', domains: ['corp.test'] }
    const checkId = await made(root, `${management}/posture-checks`, body)
    await endSession()
    await patch(`service-policies/${stage.dialId}`, { postureCheckRoles: [`@${checkId}`] })
    expect(await judged()).toEqual(refusedBy('posture'))
    const report = { id: checkId, typeId: 'DOMAIN', domain: 'corp.test' }
    const reply = await stage.caller.call('POST', `${client}/posture-response`, report)
    expect(reply.status, reply.text).toBe(201)
    expect(await judged()).toMatchObject({ ok: true })
  })

  test('grants nothing once another controller has received a report with failed posture checks', async () => {
    const body = { name: `in the office ${serial}`, typeId: 'DOMAIN', domains: ['corp.test'] }
    const checkId = await made(root, `${management}/posture-checks`, body)
    const report = (domain: string): Promise<void> =>
      stage.caller
        .call('POST', `${client}/posture-response`, { id: checkId, typeId: 'DOMAIN', domain })
        .then(({ status, text }) => expect(status, text).toBe(201))
    await report('corp.test')
    await patch(`service-policies/${stage.dialId}`, { postureCheckRoles: [`@${checkId}`] })
    await endSession()
    // The report arrives while this controller waits for the latest state.
    const posture = new Proxy(deps.posture, {
      get: (target, name) => {
        if (name === 'reachLatest') return () => report('home.test')
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
    const lagging = new RouterClientAuthorizer({ ...deps, posture }, machine)
    expect(await lagging.judge(stage.claim)).toEqual(refusedBy('posture'))
    expect(machine.get('session', stage.sessionId)).toBeUndefined()
  })

  test('grants nothing for another use (dial or bind) than that of its session', async () => {
    await endSession()
    expect(await judged({ type: 'Bind' })).toEqual(refusedBy('sessionType'))
  })

  test('grants nothing for a service that was deleted and created again', async () => {
    await remove(`services/${stage.serviceId}`)
    const body = { name: `again ${serial}`, encryptionRequired: true }
    await made(root, `${management}/services`, body)
    expect(await judged()).toEqual(refusedBy('session'))
  })

  test('grants nothing after the API session has ended', async () => {
    await endSession()
    const ended = await stage.caller.call('DELETE', `${client}/current-api-session`)
    expect(ended.status).toBe(200)
    expect(await judged()).toEqual(refusedBy('apiSession'))
  })

  test('grants nothing in another API session, even of the same identity', async () => {
    await endSession()
    const { sessionToken } = stage.claim
    const other = await newClaim(sessionOf(stage.identityId), stage.routerId, stage.serviceId)
    expect(await clients.judge({ ...other, sessionToken })).toEqual(refusedBy('session'))
  })

  test('grants nothing to a disabled identity', async () => {
    await endSession()
    const disable = `${management}/identities/${stage.identityId}/disable`
    expect((await root.call('POST', disable, { durationMinutes: 5 })).status).toBe(200)
    expect(await judged()).toEqual(refusedBy('apiSession'))
  })

  test('grants nothing with a session certificate that was revoked', async () => {
    await endSession()
    const path = `${client}/current-api-session/certificates`
    const list = await stage.caller.get(path)
    for (const { id } of list.body.data as { id: string }[]) {
      expect((await stage.caller.call('DELETE', `${path}/${id}`)).status).toBe(200)
    }
    expect(await judged()).toEqual(refusedBy('apiSession'))
  })

  test('grants nothing if a policy requires an external JWT in every request for a service session', async () => {
    const signer = await made(root, `${management}/external-jwt-signers`, {
      name: `provider ${serial}`,
      issuer: `https://provider-${serial}.test`,
      audience: 'network',
      jwksEndpoint: `https://provider-${serial}.example.com/keys`,
      enabled: true,
    })
    const { primary } = (await root.get(`${management}/auth-policies/default`)).body.data as {
      primary: object
    }
    const policy = await made(root, `${management}/auth-policies`, {
      name: `with a provider ${serial}`,
      primary,
      secondary: { requireTotp: false, requireExtJwtSigner: signer },
    })
    await patch(`identities/${stage.identityId}`, { authPolicyId: policy })
    expect(await judged(), 'the open session').toMatchObject({ ok: true })
    await endSession()
    expect(await judged()).toEqual(refusedBy('session'))
  })

  test('grants nothing if access ends while the new session is being opened', async () => {
    await endSession()
    const writer: CommandWriter = {
      ...deps.writer,
      write: async (...args) => {
        const id = await deps.writer.write(...args)
        await revoke()
        return id
      },
    }
    const racing = new RouterClientAuthorizer({ ...deps, writer }, machine)
    expect(await racing.judge(stage.claim)).toEqual(refusedBy('session'))
  })

  test('opens only one session for dials at the same time', async () => {
    await endSession()
    const { appliedIndex } = machine
    const all = await Promise.all([judged(), judged(), judged()])
    expect(all.map(({ ok }) => ok)).toEqual([true, true, true])
    expect(machine.appliedIndex).toBe(appliedIndex + 1)
  })

  test('opens a limited number of sessions a minute, without using up the limit of another API session', async () => {
    const before = stage
    for (let count = 0; count < REOPENS_MAX; count += 1) {
      await endSession()
      expect(await judged(), `reopen ${count}`).toMatchObject({ ok: true })
    }
    await endSession()
    const { appliedIndex } = machine
    expect(await judged()).toEqual(refusedBy('session'))
    expect(machine.appliedIndex).toBe(appliedIndex)
    const other = await newClaim(sessionOf(stage.identityId), stage.routerId, stage.serviceId)
    await remove(`sessions/${String(claimsOf(other.sessionToken).jti)}`)
    expect(await clients.judge(other)).toMatchObject({ ok: true })
    clock.advance(60_000)
    stage = before
    expect(await judged()).toMatchObject({ ok: true })
  })
})

test('the list of a service’s edge routers is refused for a token that belongs to another API session', async () => {
  await endSession()
  const url = `${client}/services/${stage.serviceId}/edge-routers`
  const ask = async (caller: CallerOf): Promise<number> => {
    const shown = { 'session-token': stage.claim.sessionToken }
    return (await caller.call('GET', url, undefined, shown)).status
  }
  expect(await ask(stage.caller)).toBe(200)
  expect(await ask(sessionOf(stage.identityId))).toBe(401)
})
