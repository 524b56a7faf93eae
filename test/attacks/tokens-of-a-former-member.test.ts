import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { requirePresent } from '../../src/lib/assert.ts'
import type { CertificateWithKey } from '../../src/pki/authority/authority.ts'
import type { MemberLeaf } from '../../src/pki/jwt-signer.ts'
import { claimsOf } from '../api/support/network.ts'
import { OidcClient, type Tokens } from '../api/support/oidc.ts'
import { signerOf } from '../support/member-leaf.ts'
import { Certificates, ownIdentity, password, twoControllers } from './oidc/support.ts'

// The attack: a removed controller knows the key of its certificate and each session at the time of
// its removal. It then signs tokens with that key for these sessions, and presents tokens of
// clients that it has received.

const MINUTE_MS = 60_000
const two = await twoControllers()
const { controller, root, members, former, second, newPerson, newClient } = two
const certificates = await Certificates.open(two)

let tokens: Tokens
let removed: CertificateWithKey & MemberLeaf

beforeEach(async () => {
  const { username } = await newPerson()
  tokens = await new OidcClient({ app: second }).logIn(username, password)
  removed = remove()
})
afterEach(() => {
  former.length = 0
  members.push(removed)
})

/** Removes the second controller as `cluster remove` does. */
function remove(isRecorded = true): CertificateWithKey & MemberLeaf {
  const [gone] = members.splice(1, 1)
  const leaf = requirePresent(gone, 'the second controller')
  former.push({ ...leaf, removedAtMs: controller.clock.nowMs(), isRecorded })
  return leaf
}

/** The token with other claims, signed by the removed controller. */
async function signed(changes: Readonly<Record<string, unknown>>): Promise<string> {
  const now = (): number => controller.clock.nowMs()
  const claims = { ...claimsOf(tokens.refresh_token), ...changes }
  return await signerOf(removed, [removed], now).sign(claims as never)
}

const statusOf = async (token: string, client = newClient()): Promise<number> =>
  (await client.refresh(token)).status

const seconds = (ms: number): number => Math.floor(ms / 1000)

describe('A session that was opened at a controller that is later removed', () => {
  test('continues with its refresh token, but its access token is refused', async () => {
    const client = newClient()
    expect(await client.statusAt(ownIdentity, tokens.access_token)).toBe(401)
    const renewed = await client.refresh(tokens.refresh_token)
    expect(renewed.status).toBe(200)
    const { access_token: access, refresh_token: refresh } = renewed.json as unknown as Tokens
    expect(await client.statusAt(ownIdentity, access)).toBe(200)
    former.length = 0
    expect(await statusOf(refresh)).toBe(200)
  })

  test('continues when its refresh token is exchanged, but not when its access token is exchanged', async () => {
    const client = newClient()
    const exchange = async (text: string, type: string): Promise<number> =>
      (await client.exchange(text, type, 'access_token')).status
    expect(await exchange(tokens.refresh_token, 'refresh_token')).toBe(200)
    expect(await exchange(tokens.access_token, 'access_token')).toBe(400)
  })

  test('ends when its record is deleted', async () => {
    const { z_asid: id } = claimsOf(tokens.refresh_token)
    await root.call('DELETE', `/edge/management/v1/api-sessions/${String(id)}`)
    expect(await statusOf(tokens.refresh_token)).toBe(400)
  })

  test('cannot be continued by a request from another address', async () => {
    const elsewhere = newClient()
    elsewhere.address = '192.0.2.7'
    expect(await statusOf(tokens.refresh_token, elsewhere)).toBe(400)
    expect(await statusOf(tokens.refresh_token)).toBe(200)
  })

  test('can be continued from another address only with the client certificate that opened it', async () => {
    members.push(removed)
    former.length = 0
    const [holder, other] = [await certificates.newHolder(), await certificates.newHolder()]
    const own = new OidcClient(certificates.door(holder.key))
    const { refresh_token: refresh } = await own.logInByCertificate()
    const claims = claimsOf(refresh)
    removed = remove()
    const token = await signed(claims)
    for (const [key, expected] of [
      [other.key, [400, 'access_denied']],
      [null, [400, 'access_denied']],
      [holder.key, [200, undefined]],
    ] as const) {
      const { status, json } = await new OidcClient(certificates.door(key)).refresh(token)
      expect([status, json['error']]).toEqual(expected)
    }
  })
})

describe('A token that was signed by a controller that is later removed', () => {
  test.each([
    ['names a session that does not exist', { z_asid: 'nothing' }],
    ['names an identity other than its session’s', { sub: 'admin-id' }],
    ['names a client other than its session’s', { aud: ['openziti'], client_id: 'openziti' }],
    ['claims that its identity is an administrator', { z_ia: true }],
    ['contains a log-in time other than its session’s', { auth_time: 1 }],
    ['claims a second factor that its session lacks', { amr: ['password', 'totp'] }],
    ['contains an unknown claim', { z_admin: true }],
    ['lacks a required claim', { z_ra: undefined }],
    ['claims to be an access token', { z_t: 'a' }],
  ])('is refused if it %s', async (_what, changes) => {
    expect(await statusOf(await signed(changes))).toBe(400)
    expect(await statusOf(await signed({}))).toBe(200)
  })

  test('is refused if the time of issue in it is after the removal', async () => {
    const iat = (ms: number) => ({ iat: seconds(controller.clock.nowMs() + ms) })
    expect(await statusOf(await signed(iat(2 * MINUTE_MS)))).toBe(400)
    expect(await statusOf(await signed(iat(0)))).toBe(200)
  })

  test('is refused if its lifetime exceeds that of a refresh token', async () => {
    const { iat } = claimsOf(tokens.refresh_token)
    const day = 24 * 60 * 60
    expect(await statusOf(await signed({ exp: Number(iat) + 2 * day }))).toBe(400)
    expect(await statusOf(await signed({ exp: Number(iat) + day }))).toBe(200)
  })

  test('is refused if its session was opened after the removal', async () => {
    const { username } = await newPerson()
    const later = claimsOf((await newClient().logIn(username, password)).refresh_token)
    const at = async (removedAtMs: number): Promise<number> => {
      former[0] = { ...requirePresent(former[0], 'it'), removedAtMs }
      const iat = seconds(removedAtMs)
      return await statusOf(await signed({ ...later, iat, exp: iat + 3600 }))
    }
    const nowMs = controller.clock.nowMs()
    expect(await at(nowMs - 3 * MINUTE_MS)).toBe(400)
    expect(await at(nowMs)).toBe(200)
  })

  test('is refused if the replicated configuration does not record the removal', async () => {
    members.push(removed)
    former.length = 0
    removed = remove(false)
    expect(await statusOf(tokens.refresh_token)).toBe(400)
  })

  test('cannot continue a session a second time', async () => {
    const client = newClient()
    expect((await client.refresh(tokens.refresh_token)).status).toBe(200)
    controller.clock.advance(3 * MINUTE_MS)
    expect(await statusOf(tokens.refresh_token)).toBe(400)
  })
})
