import { describe, expect, test } from 'vitest'

import { CallerOf, client, management } from '../../api/support/caller.ts'
import { turnOnMfa } from '../../api/support/mfa.ts'
import { claimsOf } from '../../api/support/network.ts'
import { OidcClient, type OidcReply, type Tokens } from '../../api/support/oidc.ts'
import { Certificates, ownIdentity, password, twoControllers } from './support.ts'

// The attack: somebody continues a session with a stolen refresh token, or with one whose holder
// may no longer log in.

const ACCESS = 'urn:ietf:params:oauth:token-type:access_token'
const REFRESH = 'urn:ietf:params:oauth:token-type:refresh_token'
const ID = 'urn:ietf:params:oauth:token-type:id_token'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'

const two = await twoControllers()
const { controller, root, first, second, newClient, newPerson } = two
const certificates = await Certificates.open(two)

function exchange(
  oidc: OidcClient,
  token: string,
  from: string,
  to: string,
  changes: Readonly<Record<string, string>> = {},
): Promise<OidcReply> {
  return oidc.send('POST', '/oidc/oauth/token', {
    grant_type: EXCHANGE,
    client_id: 'native',
    subject_token: token,
    subject_token_type: from,
    requested_token_type: to,
    ...changes,
  })
}

/** Responses of both controllers to each way of getting another token. */
async function waysOn({ access_token: access, refresh_token: refresh }: Tokens) {
  const found: [number, unknown][] = []
  for (const app of [first, second]) {
    const oidc = new OidcClient({ app })
    for (const { status, json } of [
      await oidc.refresh(refresh),
      await exchange(oidc, refresh, REFRESH, ACCESS),
      await exchange(oidc, access, ACCESS, ACCESS),
    ]) {
      found.push([status, json['error'] ?? null])
    }
  }
  return found
}

const goesOn = Array.from({ length: 6 }, () => [200, null])
const hasEnded = Array.from({ length: 6 }, () => [400, 'invalid_grant'])

describe('a refresh token of an identity', () => {
  test('works at each controller until the identity logs out', async () => {
    const tokens = await newClient().logIn((await newPerson()).username, password)
    expect(await waysOn(tokens)).toEqual(goesOn)
    const headers = { authorization: `Bearer ${tokens.access_token}` }
    const out = await newClient().send(
      'DELETE',
      `${client}/current-api-session`,
      undefined,
      headers,
    )
    expect(out.status).toBe(200)
    expect(await waysOn(tokens)).toEqual(hasEnded)
  })

  test('becomes invalid when an administrator disables the identity, and stays invalid once the identity is enabled again', async () => {
    const { id, username } = await newPerson()
    const tokens = await newClient().logIn(username, password)
    const path = `${management}/identities/${id}`
    await root.call('POST', `${path}/disable`, { durationMinutes: 0 })
    expect(await waysOn(tokens)).toEqual(hasEnded)
    await root.call('POST', `${path}/enable`, {})
    expect(await waysOn(tokens)).toEqual(hasEnded)
  })

  test('becomes invalid when an administrator deletes the identity or its session', async () => {
    const [ann, bob] = [await newPerson(), await newPerson()]
    const ofAnn = await newClient().logIn(ann.username, password)
    const ofBob = await newClient().logIn(bob.username, password)
    await root.call('DELETE', `${management}/identities/${ann.id}`)
    const session = String(claimsOf(ofBob.access_token)['z_asid'])
    await root.call('DELETE', `${management}/api-sessions/${session}`)
    expect(await waysOn(ofAnn)).toEqual(hasEnded)
    expect(await waysOn(ofBob)).toEqual(hasEnded)
  })

  test.each(['IDENTITY', 'API_SESSION'])(
    'becomes invalid when a revocation of the type %s is created',
    async (type) => {
      const { id, username } = await newPerson()
      const tokens = await newClient().logIn(username, password)
      const named = type === 'IDENTITY' ? id : String(claimsOf(tokens.access_token)['z_asid'])
      const revoked = await root.call('POST', `${management}/revocations`, { id: named, type })
      expect(revoked.status, revoked.text).toBe(201)
      expect(await waysOn(tokens)).toEqual(hasEnded)
      // A later log-in is not affected.
      const later = await newClient().logIn(username, password)
      expect(await waysOn(later)).toEqual(goesOn)
    },
  )

  test('becomes invalid when the password of the identity is changed', async () => {
    const { username } = await newPerson()
    const tokens = await newClient().logIn(username, password)
    const caller = new CallerOf(controller)
    await caller.logIn({ username, password }, client)
    const own = await caller.get(`${client}/current-identity/authenticators`)
    const [{ id = '' } = {}] = own.body.data as { id?: string }[]
    const changed = await caller.call('PUT', `${client}/current-identity/authenticators/${id}`, {
      currentPassword: password,
      username,
      password: 'another long password',
    })
    expect(changed.status, changed.text).toBe(200)
    expect(await waysOn(tokens)).toEqual(hasEnded)
  })

  test('is refused without the second factor that the identity has enrolled since the log-in', async () => {
    const { username } = await newPerson()
    const tokens = await newClient().logIn(username, password)
    const caller = new CallerOf(controller)
    await caller.logIn({ username, password }, client)
    await turnOnMfa(controller, caller)
    expect(await waysOn(tokens)).toEqual(hasEnded)
    expect(await newClient().statusAt(ownIdentity, tokens.access_token)).toBe(401)
  })
})

test('using a refresh token of an active session at two controllers at the same time writes nothing, and opens no second session', async () => {
  const { access_token: access, refresh_token: token } = await newClient().logIn(
    (await newPerson()).username,
    password,
  )
  await newClient().statusAt(ownIdentity, access)
  const before = controller.cluster.proposals.length
  const doors = [first, second, first, second].map((app) => new OidcClient({ app }))
  const replies = await Promise.all(doors.map((door) => door.refresh(token)))
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(controller.cluster.proposals).toHaveLength(before)
  const claims = claimsOf(access)
  for (const { json } of replies) {
    const { z_asid, auth_time, amr, sub } = claimsOf(json['access_token'])
    expect({ z_asid, auth_time, amr, sub }).toEqual({
      z_asid: claims['z_asid'],
      auth_time: claims['auth_time'],
      amr: claims['amr'],
      sub: claims.sub,
    })
  }
})

test.each([
  ['the ID of another client', { client_id: 'openziti' }, 'invalid_grant'],
  ['no client ID', { client_id: '' }, 'invalid_client'],
  ['an unknown client ID', { client_id: 'somebody' }, 'invalid_client'],
  ['a scope that it was not given', { scope: 'openid profile' }, 'invalid_scope'],
])('a refresh token is refused if the request has %s', async (_what, changes, error) => {
  const oidc = newClient()
  const { refresh_token: token } = await oidc.logIn((await newPerson()).username, password)
  for (const reply of [
    await oidc.refresh(token, changes),
    await exchange(oidc, token, REFRESH, ACCESS, changes),
  ]) {
    expect([reply.status, reply.json['error']]).toEqual([400, error])
  }
})

test('a scope that a client omitted in one refresh cannot be requested in a later refresh', async () => {
  const oidc = newClient()
  const { refresh_token: token } = await oidc.logIn((await newPerson()).username, password)
  const { json } = await oidc.refresh(token, { scope: 'offline_access' })
  expect(json['id_token']).toBeUndefined()
  const again = await oidc.refresh(String(json['refresh_token']), { scope: 'openid' })
  expect(again.json['error']).toBe('invalid_scope')
})

test('an access token from a token exchange expires no later than the original token, even after several exchanges', async () => {
  const { username } = await newPerson()
  const oidc = newClient()
  const { access_token: stolen } = await oidc.logIn(username, password)
  const { exp: end = 0 } = claimsOf(stolen)
  let access = stolen
  for (let at = 0; at < 3; at += 1) {
    controller.clock.advance(60_000)
    const { status, json } = await exchange(oidc, access, ACCESS, ACCESS)
    expect(status).toBe(200)
    access = String(json['access_token'])
    expect(claimsOf(access)['exp']).toBeLessThanOrEqual(end)
  }
  const id = await exchange(oidc, access, ACCESS, ID)
  expect(claimsOf(String(id.json['access_token']))['exp']).toBeLessThanOrEqual(end)
  controller.clock.advance(end * 1000 - 500 - controller.clock.nowMs())
  const late = await exchange(oidc, access, ACCESS, ACCESS)
  expect([late.status, late.json['error']]).toEqual([400, 'invalid_grant'])
})

test('an access token cannot be exchanged for a refresh token', async () => {
  const oidc = newClient()
  const { access_token: token } = await oidc.logIn((await newPerson()).username, password)
  const refused = await exchange(oidc, token, ACCESS, REFRESH)
  expect([refused.status, refused.json['error']]).toEqual([400, 'invalid_request'])
  const allowed = await exchange(oidc, token, ACCESS, ID)
  expect(claimsOf(allowed.json['access_token'])).toMatchObject({ azp: 'native' })
  expect(allowed.json['refresh_token']).toBeUndefined()
})

describe('a token of a client that presented a certificate at its log-in', () => {
  test('is useless without the certificate if the client logged in by certificate', async () => {
    const [ann, mallory] = [await certificates.newHolder(), await certificates.newHolder()]
    const own = new OidcClient(certificates.door(ann.key))
    const tokens = await own.logInByCertificate()
    expect(claimsOf(tokens.access_token)['z_cfs']).toHaveLength(1)
    for (const key of [null, mallory.key]) {
      const thief = new OidcClient(certificates.door(key))
      for (const reply of [
        await thief.refresh(tokens.refresh_token),
        await exchange(thief, tokens.refresh_token, REFRESH, ACCESS),
        await exchange(thief, tokens.access_token, ACCESS, ID),
      ]) {
        expect([reply.status, reply.json['error']]).toEqual([400, 'access_denied'])
      }
      expect(await thief.statusAt(ownIdentity, tokens.access_token)).toBe(401)
      expect(await thief.statusAt('/oidc/userinfo', tokens.access_token)).toBe(401)
    }
    expect((await own.refresh(tokens.refresh_token)).status).toBe(200)
    expect(await own.statusAt(ownIdentity, tokens.access_token)).toBe(200)
  })

  test('is not bound to the certificate if the client logged in by password', async () => {
    const { username } = await newPerson()
    const { key } = await certificates.newHolder()
    const oidc = new OidcClient(certificates.door(key))
    const { access_token: token } = await oidc.logIn(username, password)
    expect(claimsOf(token)['z_cfs']).toBeNull()
    expect(await newClient().statusAt(ownIdentity, token)).toBe(200)
  })
})

describe('a refresh token that was used before', () => {
  test('is accepted again for a short time, at any controller, because the response may have been lost', async () => {
    const oidc = newClient()
    const { refresh_token: token } = await oidc.logIn((await newPerson()).username, password)
    const next = String((await oidc.refresh(token)).json['refresh_token'])
    for (const app of [first, second]) {
      expect((await new OidcClient({ app }).refresh(token)).status).toBe(200)
    }
    controller.clock.advance(5 * 60_000)
    expect((await oidc.refresh(next)).status).toBe(200)
    controller.clock.advance(60_000)
    expect((await oidc.refresh(next)).status).toBe(200)
  })

  test('ends the session when it is used later, because two parties hold the token and one of them may be a thief', async () => {
    const [thief, owner] = [newClient(), newClient()]
    const { refresh_token: stolen } = await owner.logIn((await newPerson()).username, password)
    const taken = await thief.refresh(stolen)
    expect(taken.status).toBe(200)
    controller.clock.advance(3 * 60_000)
    const refused = await owner.refresh(stolen)
    expect([refused.status, refused.json['error']]).toEqual([400, 'invalid_grant'])
    expect((await thief.refresh(String(taken.json['refresh_token']))).status).toBe(400)
    expect(await thief.statusAt(ownIdentity, String(taken.json['access_token']))).toBe(401)
  })

  test('is recognized as used even if another controller accepted it', async () => {
    const oidc = newClient()
    const { access_token: access, refresh_token: token } = await oidc.logIn(
      (await newPerson()).username,
      password,
    )
    const id = String(claimsOf(access)['z_asid'])
    controller.refreshes.hear('ctrl2', id, { generation: 1, usedAtMs: controller.clock.nowMs() })
    controller.clock.advance(3 * 60_000)
    expect((await oidc.refresh(token)).status).toBe(400)
    controller.scheduler.run(controller.parts.limits.refreshSweepMs)
    expect(controller.refreshes.own.has(id)).toBe(false)
  })

  test('is accepted again even after five minutes if it is bound to a certificate', async () => {
    const { key } = await certificates.newHolder()
    const own = new OidcClient(certificates.door(key))
    const { refresh_token: token } = await own.logInByCertificate()
    expect((await own.refresh(token)).status).toBe(200)
    controller.clock.advance(5 * 60_000)
    expect((await own.refresh(token)).status).toBe(200)
  })
})

// The clock advances by a month, so this is the last test.
test('a refresh token expires at the maximum lifetime of its session, even if it was used recently', async () => {
  const oidc = newClient()
  let { refresh_token: token } = await oidc.logIn((await newPerson()).username, password)
  const endsAtMs = controller.clock.nowMs() + controller.parts.limits.oidcSessionMsMax
  while (controller.clock.nowMs() + 12 * 60 * 60_000 < endsAtMs) {
    controller.clock.advance(12 * 60 * 60_000)
    const { status, json } = await oidc.refresh(token)
    expect(status).toBe(200)
    token = String(json['refresh_token'])
    const { exp = 0 } = claimsOf(token)
    expect(exp * 1000).toBeLessThanOrEqual(endsAtMs)
  }
  controller.clock.advance(12 * 60 * 60_000)
  const refused = await oidc.refresh(token)
  expect([refused.status, refused.json['error']]).toEqual([400, 'invalid_grant'])
})
