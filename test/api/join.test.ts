import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Problem } from '../../src/lib/problems.ts'
import { FEATURE_LEVEL } from '../../src/ports/feature-level.ts'
import { CallerOf, fabric } from './support/caller.ts'
import { admin, startController, type TestController, user } from './support/controller.ts'

let controller: TestController
let anonymous: CallerOf

beforeEach(async () => {
  controller = await startController({ logInFailuresMax: 3 })
  anonymous = new CallerOf(controller)
})
afterEach(async () => {
  await controller.close()
  expect(controller.errors).toEqual([])
})

const join = `${fabric}/cluster/join`
const invite = `${fabric}/cluster/invite`
const revoke = `${fabric}/cluster/revoke-ticket`
const storeId = Uint8Array.from({ length: 16 }, (_, at) => 240 + at)
const request = {
  ticket: 'flotilla-ticket-1.verySecret.x',
  id: 'ctrl4',
  certificateRequestPem: '-----BEGIN CERTIFICATE REQUEST-----',
  storeId: Buffer.from(storeId).toString('base64url'),
  address: 'host:1480',
  hosts: ['host'],
  version: 'v0.1.0',
  featureLevel: FEATURE_LEVEL,
}

describe('POST /cluster/invite', () => {
  test('returns a ticket to an administrator: by default for a voter, valid for one hour', async () => {
    await anonymous.logIn(admin)
    const reply = await anonymous.call('POST', invite, {})
    expect(reply.status).toBe(200)
    expect(reply.body.data).toEqual({
      ticket: 'flotilla-ticket-1.x.y',
      id: 'ticketId',
      expiresAtMs: 1,
    })
    await anonymous.call('POST', invite, { isVoter: false, lifetimeMs: 60_000 })
    expect(controller.admission.invites).toEqual([
      { isVoter: true, lifetimeMs: 3_600_000 },
      { isVoter: false, lifetimeMs: 60_000 },
    ])
  })

  test('is refused to callers who are not administrators', async () => {
    expect((await anonymous.call('POST', invite, {})).status).toBe(401)
    await anonymous.logIn(user)
    expect((await anonymous.call('POST', invite, {})).status).toBe(401)
    expect(controller.admission.invites).toEqual([])
  })
})

describe('join tickets', () => {
  test('can be listed and revoked by administrators', async () => {
    await anonymous.logIn(admin)
    const listed = await anonymous.get(`${fabric}/cluster/list-tickets`)
    expect(listed.status).toBe(200)
    expect(listed.body.data).toEqual([
      { id: 'ticketId', isVoter: true, createdAtMs: 1, expiresAtMs: 2, usedBy: null },
    ])
    const done = await anonymous.call('POST', revoke, { id: 'ticketId' })
    expect([done.status, done.body.data]).toEqual([200, {}])
    expect(controller.admission.revoked).toEqual([['ticketId', expect.stringMatching(/./)]])
    controller.admission.refusal = new Problem('NOT_FOUND')
    expect((await anonymous.call('POST', revoke, { id: 'another' })).status).toBe(404)
    expect((await anonymous.call('POST', revoke, {})).status).toBe(400)
  })

  test('are not accessible without a session or to an identity without permissions', async () => {
    for (const isLoggedIn of [false, true]) {
      if (isLoggedIn) await anonymous.logIn(user)
      expect((await anonymous.get(`${fabric}/cluster/list-tickets`)).status).toBe(401)
      expect((await anonymous.call('POST', revoke, { id: 'ticketId' })).status).toBe(401)
    }
    expect(controller.admission.revoked).toEqual([])
  })
})

describe('POST /cluster/join', () => {
  test('works without a session, and accepts binary values in base64url', async () => {
    const reply = await anonymous.call('POST', join, request)
    expect(reply.status).toBe(200)
    expect(reply.body.data).toEqual({
      clusterId: 'cluster-1',
      generation: 3,
      trustDomain: 'test.internal',
      certificatePem: 'certificate',
      caPem: 'ca',
      configuration: '-vv8',
      configurationIndex: 7,
      isVoter: true,
      nowMs: 1,
      sharedOptions: [{ name: 'oidc.enabled', value: 'false' }],
    })
    expect(controller.admission.requests).toEqual([{ ...request, storeId }])
  })

  test.each([
    ['no ticket', { ticket: undefined }],
    ['a ticket that is not a string', { ticket: 5 }],
    ['a store id of the wrong length', { storeId: 'AAAA' }],
    ['a store id that is not base64url', { storeId: '+/'.repeat(11) }],
    ['no hosts', { hosts: [] }],
    ['too many hosts', { hosts: Array(33).fill('h') }],
    ['an invalid feature level', { featureLevel: 'new' }],
  ])(
    'with %s is refused before the ticket is read, and the response does not echo the ticket',
    async (_what, change) => {
      const reply = await anonymous.call('POST', join, { ...request, ...change })
      expect([reply.status, reply.body.error?.code]).toEqual([400, 'COULD_NOT_VALIDATE'])
      expect(reply.text).not.toContain('verySecret')
      expect(controller.admission.requests).toEqual([])
    },
  )

  test('refuses a body larger than 92 KiB', async () => {
    const large = { ...request, certificateRequestPem: 'x'.repeat(100_000) }
    expect((await anonymous.call('POST', join, large)).status).toBe(413)
    expect(controller.admission.requests).toEqual([])
  })

  test('returns the reason if the ticket is invalid', async () => {
    controller.admission.refusal = new Problem('TICKET_REFUSED', { detail: 'it has expired' })
    const reply = await anonymous.call('POST', join, request)
    expect([reply.status, reply.body.error?.code]).toEqual([403, 'TICKET_REFUSED'])
    expect(reply.text).toContain('it has expired')
    expect(reply.text).not.toContain('verySecret')
  })

  test('refuses requests of an address during a pause after it repeatedly sent invalid tickets', async () => {
    controller.admission.refusal = new Problem('TICKET_REFUSED')
    for (let at = 0; at < 3; at += 1) await anonymous.call('POST', join, request)
    const paused = await anonymous.call('POST', join, request)
    expect(paused.status).toBe(429)
    expect(paused.headers['retry-after']).toBeDefined()
    expect(controller.admission.requests).toHaveLength(3)
    anonymous.address = '10.0.0.7'
    expect((await anonymous.call('POST', join, request)).status).toBe(403)
    controller.clock.advance(60_000)
    controller.admission.refusal = null
    anonymous.address = '127.0.0.1'
    expect((await anonymous.call('POST', join, request)).status).toBe(200)
  })

  test('returns a refusal whose cause is not the ticket, and does not count it as a guess of a ticket', async () => {
    controller.admission.refusal = new Problem('MEMBERSHIP_REFUSED', { detail: 'ctrl4 is taken' })
    for (let at = 0; at < 5; at += 1) {
      const reply = await anonymous.call('POST', join, request)
      expect([reply.status, reply.body.error?.code]).toEqual([409, 'MEMBERSHIP_REFUSED'])
    }
  })
})
