import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { encodeText } from '../../src/channel/headers.ts'
import { BearerBench, modelIdentity, revocationOf, SECOND_MS } from '../router/edge/bearers.ts'
import { eventually, type Person } from '../router/edge/support.ts'

// The attack: a client presents to a router an OIDC access token that belongs to another person,
// has another purpose, or is no longer valid. The router decides alone, because no controller has
// reported the session to it.

let bearers: BearerBench
let ann: Person
beforeEach(async () => {
  bearers = await BearerBench.open()
  ann = await bearers.person('ann')
})
afterEach(() => bearers.bench.close())

const nowSeconds = (): number => Math.floor(Date.now() / SECOND_MS)

async function isAdmitted(token: string, person = ann): Promise<boolean> {
  return (await bearers.bench.connect(person, { token })).isAdmitted
}

test('An access token is refused without the client certificate to which it is bound', async () => {
  const mallory = await bearers.person('mallory')
  expect(await isAdmitted(ann.token, mallory)).toBe(false)
  expect(await isAdmitted(ann.token), 'its owner').toBe(true)
})

test.each([
  ['is a refresh token', { z_t: 'r' }],
  ['is a service session token', { z_t: 's' }],
  ['is for another audience', { aud: ['https://elsewhere.example'] }],
  ['is for several audiences', { aud: ['openziti', 'https://elsewhere.example'] }],
  ['names no session', { z_asid: null }],
])('A token that %s is refused', async (_what, claims) => {
  expect(await isAdmitted(await bearers.token(ann, claims))).toBe(false)
})

test('An access token is refused before it becomes valid and after it expires', async () => {
  expect(await isAdmitted(await bearers.token(ann, { exp: nowSeconds() - 1 }))).toBe(false)
  expect(await isAdmitted(await bearers.token(ann, { nbf: nowSeconds() + 600 }))).toBe(false)
})

test('An access token that was signed with a key for another purpose is refused', async () => {
  const authority = await bearers.bench.network.leaf('authority', [], [])
  bearers.tellKey(authority.certificatePem, false)
  expect(await isAdmitted(await bearers.token(ann, {}, authority))).toBe(false)
})

test('An access token with modified claims is refused', async () => {
  const [head = '', , mac = ''] = ann.token.split('.')
  const claims = { sub: 'ann', z_t: 'a', aud: ['openziti'], exp: nowSeconds() + 900 }
  const forged = Buffer.from(JSON.stringify(claims)).toString('base64url')
  expect(await isAdmitted(`${head}.${forged}.${mac}`)).toBe(false)
  const none = Buffer.from(JSON.stringify({ alg: 'none', typ: 'JWT' })).toString('base64url')
  expect(await isAdmitted(`${none}.${forged}.`)).toBe(false)
})

describe('A client that is connected with an access token', () => {
  test('is disconnected when its session is revoked', async () => {
    const client = await bearers.bench.connect(ann)
    bearers.tell(revocationOf(ann.sessionId, 'API_SESSION', Date.now()))
    await eventually(() => client.closedReason).not.toBe(null)
    expect(await isAdmitted(ann.token)).toBe(false)
  })

  test('is disconnected when its token alone is revoked', async () => {
    const token = await bearers.token(ann, { jti: 'the-stolen-one' })
    const client = await bearers.bench.connect(ann, { token })
    bearers.tell(revocationOf('the-stolen-one', 'JTI', Date.now()))
    await eventually(() => client.closedReason).not.toBe(null)
    expect(await isAdmitted(token)).toBe(false)
    expect(await isAdmitted(ann.token), 'another token').toBe(true)
  })

  test('is disconnected when earlier tokens of its identity are revoked', async () => {
    const token = await bearers.token(ann, { iat: nowSeconds() - 100 })
    const client = await bearers.bench.connect(ann, { token })
    bearers.tell(revocationOf('ann', 'IDENTITY', Date.now() - 50 * SECOND_MS))
    await eventually(() => client.closedReason).not.toBe(null)
    expect(await isAdmitted(token)).toBe(false)
    expect(await isAdmitted(ann.token), 'a later token').toBe(true)
  })

  test('is disconnected when its identity is disabled', async () => {
    const client = await bearers.bench.connect(ann)
    bearers.tell(modelIdentity('ann', { disabledAt: -1 }))
    await eventually(() => client.closedReason).not.toBe(null)
    expect(await isAdmitted(ann.token)).toBe(false)
  })

  test('is disconnected when the controller that signed its token is removed', async () => {
    const other = await bearers.bench.network.leaf('ctrl2', [], [])
    bearers.tellKey(other.certificatePem)
    const token = await bearers.token(ann, {}, other)
    const client = await bearers.bench.connect(ann, { token })
    expect(client.isAdmitted).toBe(true)
    bearers.forgetKey(other.certificatePem)
    await eventually(() => client.closedReason).not.toBe(null)
    expect(await isAdmitted(token)).toBe(false)
    expect(await isAdmitted(ann.token), 'a token of another controller').toBe(true)
  })

  test('is disconnected when its token expires', async () => {
    const token = await bearers.token(ann, { exp: nowSeconds() + 600 })
    const client = await bearers.bench.connect(ann, { token })
    bearers.bench.aheadMs = 601 * SECOND_MS
    bearers.tell(modelIdentity('other'))
    await eventually(() => client.closedReason).not.toBe(null)
  })
})

test('An access token of another client’s session cannot replace the token of a channel', async () => {
  const mallory = await bearers.person('mallory')
  const thief = await bearers.bench.connect(mallory)
  const request = { contentType: 60_803, body: encodeText(ann.token) }
  expect((await thief.channel.request(request, 20_000)).contentType).toBe(60_802)
  await eventually(() => thief.closedReason).not.toBe(null)
})
