import { describe, expect, test } from 'vitest'

import { CommandKind } from '../../../proto/gen/command_pb.ts'
import { CallerOf, client, fabric, management } from '../../api/support/caller.ts'
import { admin } from '../../api/support/controller.ts'
import { claimsOf, listed } from '../../api/support/network.ts'
import { OidcClient, parameterOf, redirectUri, type Tokens } from '../../api/support/oidc.ts'
import { ownIdentity, password, twoControllers } from './support.ts'

// The attack: somebody with an ID, a code or a token of the authorization code flow uses it for
// another purpose.

const two = await twoControllers()
const { controller, root, first, second, newPerson, newPersonWithCodes } = two
const { newClient, newClientOf } = two

test('a second factor that was given in the log-in of one identity does not count for another identity', async () => {
  const mallory = await newPersonWithCodes()
  const alice = await newPersonWithCodes()
  const oidc = newClient()
  const id = await oidc.begin()
  const logIn = { id, username: mallory.username, password }
  expect((await oidc.send('POST', '/oidc/login/password', logIn)).status).toBe(200)
  const [code = ''] = mallory.app.recoveryCodes
  expect((await oidc.send('POST', '/oidc/login/totp', { id, code })).status).toBe(302)
  const other = { id, username: alice.username, password }
  expect((await oidc.send('POST', '/oidc/login/password', other)).status).toBe(401)
  const queries = await oidc.send('GET', `/oidc/login/auth-queries?id=${encodeURIComponent(id)}`)
  expect(queries.status).toBe(401)
})

const sessionsOf = (identityId: string) =>
  listed(
    root,
    `${management}/api-sessions?filter=${encodeURIComponent(`identity="${identityId}"`)}`,
  )

test('an authorization code is useless without the PKCE code verifier of the client that requested it', async () => {
  const { id, username } = await newPerson()
  const oidc = newClient()
  const code = await oidc.codeOf(await oidc.passed(username, password))
  const thieves = [newClient(), newClientOf(second)]
  for (const thief of thieves) {
    for (const changes of [{}, { code_verifier: '' }]) {
      const { status, json } = await thief.redeem(code, changes)
      expect([status, json]).toEqual([400, expect.objectContaining({ error: 'invalid_grant' })])
      expect(json).not.toHaveProperty('access_token')
    }
  }
  expect(await sessionsOf(id)).toEqual([])
  // The attempts of the thief do not use up the code.
  expect((await oidc.redeem(code)).status).toBe(200)
  expect(await sessionsOf(id)).toHaveLength(1)
})

test('an authorization code is invalid once the password of its log-in was changed', async () => {
  const { id, username } = await newPerson()
  const oidc = newClient()
  const code = await oidc.codeOf(await oidc.passed(username, password))
  const [authenticator] = await listed(
    root,
    `${management}/authenticators?filter=${encodeURIComponent(`identity = "${id}"`)}`,
  )
  const changed = await root.call(
    'PATCH',
    `${management}/authenticators/${String(authenticator?.['id'])}`,
    { password: 'another one' },
  )
  expect(changed.status, changed.text).toBe(200)
  expect(await oidc.redeem(code)).toMatchObject({ status: 400, json: { error: 'invalid_grant' } })
  expect(await sessionsOf(id)).toEqual([])
})

test('the redemption of a second code from one log-in ends the session that the first code opened', async () => {
  const { username } = await newPerson()
  const oidc = newClient()
  const step = await oidc.passed(username, password)
  const codes = [await oidc.codeOf(step), await oidc.codeOf(step)] as const
  const { json } = await oidc.redeem(codes[0])
  const token = String(json['access_token'])
  expect(await oidc.statusAt(ownIdentity, token)).toBe(200)
  expect((await oidc.redeem(codes[1])).status).toBe(400)
  expect(await oidc.statusAt(ownIdentity, token)).toBe(401)
})

test('an authorization code that is redeemed again later ends the session that its first redemption opened', async () => {
  const { username } = await newPerson()
  const oidc = newClient()
  const code = await oidc.codeOf(await oidc.passed(username, password))
  const { json } = await oidc.redeem(code)
  controller.clock.advance(11_000)
  const again = await oidc.redeem(code)
  expect([again.status, again.json['error']]).toEqual([400, 'invalid_grant'])
  expect(await oidc.statusAt(ownIdentity, String(json['access_token']))).toBe(401)
})

describe('a second redemption of an authorization code', () => {
  const redeemed = async () => {
    const { username } = await newPerson()
    const oidc = newClient()
    const code = await oidc.codeOf(await oidc.passed(username, password))
    const answer = await oidc.redeem(code)
    expect(answer.status, answer.text).toBe(200)
    const elsewhere = newClientOf(second)
    const form = {
      grant_type: 'authorization_code',
      client_id: 'native',
      redirect_uri: redirectUri,
      code_verifier: oidc.verifier,
      code,
    }
    const again = async () => {
      const { status, json } = await elsewhere.send('POST', '/oidc/oauth/token', form)
      return [status, json['error']]
    }
    const { access_token: access, refresh_token: refresh } = answer.json as unknown as Tokens
    return { oidc, access, refresh, again }
  }

  test('returns no tokens if the session has ended, and earlier tokens stay invalid', async () => {
    const { oidc, access, refresh, again } = await redeemed()
    await oidc.send('POST', '/oidc/revoke', { token: refresh })
    expect(await again()).toEqual([400, 'invalid_grant'])
    expect(await oidc.statusAt(ownIdentity, access)).toBe(401)
    expect((await oidc.refresh(refresh)).json['error']).toBe('invalid_grant')
  })

  test('ends the session if the tokens of the first redemption were renewed', async () => {
    const { oidc, access, refresh, again } = await redeemed()
    expect((await oidc.refresh(refresh)).status).toBe(200)
    expect(await again()).toEqual([400, 'invalid_grant'])
    expect(await oidc.statusAt(ownIdentity, access)).toBe(401)
  })

  test('ends the session if the tokens of the first redemption were exchanged', async () => {
    const { oidc, access, again } = await redeemed()
    expect((await oidc.exchange(access, 'access_token', 'access_token')).status).toBe(200)
    expect(await again()).toEqual([400, 'invalid_grant'])
    expect(await oidc.statusAt(ownIdentity, access)).toBe(401)
  })

  test('ends the session if the tokens of the first redemption were used', async () => {
    const { oidc, access, again } = await redeemed()
    expect(await oidc.statusAt(ownIdentity, access)).toBe(200)
    expect(await again()).toEqual([400, 'invalid_grant'])
    expect(await oidc.statusAt(ownIdentity, access)).toBe(401)
  })

  test('returns tokens only within ten seconds after the first redemption', async () => {
    const { oidc, access, again } = await redeemed()
    controller.clock.advance(6000)
    expect((await again())[0]).toBe(200)
    controller.clock.advance(6000)
    expect(await again()).toEqual([400, 'invalid_grant'])
    expect(await oidc.statusAt(ownIdentity, access)).toBe(401)
  })
})

test('an authorization code that is redeemed at two controllers at the same time opens one session', async () => {
  const { id, username } = await newPerson()
  const oidc = newClient()
  const code = await oidc.codeOf(await oidc.passed(username, password))
  const form = {
    grant_type: 'authorization_code',
    client_id: 'native',
    redirect_uri: redirectUri,
    code_verifier: oidc.verifier,
    code,
  }
  const doors = [first, second, first, second].map((app) => new OidcClient({ app }))
  // All sessions are proposed before any controller knows of another one.
  const { cluster } = controller
  const { propose } = cluster
  const all = Promise.withResolvers<null>()
  let proposed = 0
  cluster.propose = async (input) => {
    if (input.kind === CommandKind.SESSION_CREATE) {
      proposed += 1
      if (proposed === doors.length) all.resolve(null)
      await all.promise
    }
    return await propose.call(cluster, input)
  }
  const replies = await Promise.all(
    doors.map((door) => door.send('POST', '/oidc/oauth/token', form)),
  )
  cluster.propose = propose
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  const ids = replies.map(({ json }) => claimsOf(json['access_token'])['z_asid'])
  expect(new Set(ids).size).toBe(1)
  const filter = encodeURIComponent(`identity="${id}"`)
  expect(await listed(root, `${management}/api-sessions?filter=${filter}`)).toHaveLength(1)
})

test('two codes from one log-in that are redeemed at two controllers at the same time leave no session', async () => {
  const { id, username } = await newPerson()
  const oidc = newClient()
  const step = await oidc.passed(username, password)
  const codes = [await oidc.codeOf(step), await oidc.codeOf(step)] as const
  const other = new OidcClient({ app: second })
  const replies = await Promise.all([
    oidc.redeem(codes[0]),
    other.redeem(codes[1], { code_verifier: oidc.verifier }),
  ])
  expect(replies.map(({ status }) => status)).toContain(400)
  const filter = encodeURIComponent(`identity="${id}"`)
  expect(await listed(root, `${management}/api-sessions?filter=${filter}`)).toEqual([])
})

test('authorization codes, log-ins and authorization requests expire', async () => {
  const [{ username }, other] = [await newPerson(), await newPerson()]
  const [oidc, early] = [newClient(), newClient()]
  const id = await oidc.begin()
  const logIn = () => oidc.send('POST', '/oidc/login/password', { id, username, password })
  const step = await logIn()
  const { pathname, search } = new URL(String(step.headers['location']))
  const code = await oidc.codeOf(step)
  const earlyCode = await early.codeOf(await early.passed(other.username, password))
  controller.clock.advance(59_000)
  expect((await early.redeem(earlyCode)).status).toBe(200)
  controller.clock.advance(2000)
  expect(await oidc.redeem(code)).toMatchObject({ status: 400, json: { error: 'invalid_grant' } })
  expect((await oidc.send('GET', pathname + search)).status).toBe(400)
  // An authorization request is valid for ten minutes, also for a second log-in.
  controller.clock.advance(8 * 60_000)
  expect((await logIn()).status).toBe(302)
  controller.clock.advance(60_000)
  expect((await logIn()).status).toBe(401)
})

test('the ID of a log-in gives access to no second-factor step before the password was verified', async () => {
  const { id: identityId, app } = await newPersonWithCodes()
  const before = await sessionsOf(identityId)
  const oidc = newClient()
  const id = await oidc.begin()
  const query = `?id=${encodeURIComponent(id)}`
  const [code = ''] = app.recoveryCodes
  const steps = [
    await oidc.send('GET', `/oidc/login/auth-queries${query}`),
    await oidc.send('POST', '/oidc/login/totp', { id, code }),
    await oidc.send('POST', '/oidc/login/totp', { id, code: app.freshCode() }),
    await oidc.send('POST', '/oidc/login/totp/enroll', { id }),
  ]
  expect(steps.map(({ status }) => status)).toEqual([401, 401, 401, 401])
  expect(await sessionsOf(identityId)).toEqual(before)
})

test('pages whose address contains the ID of a log-in send no referrer and are not cached', async () => {
  const { username } = await newPerson()
  const oidc = newClient()
  const begun = await oidc.authorize()
  const id = parameterOf(begun.headers['location'], 'authRequestID')
  const page = await oidc.send('GET', `/oidc/login/password?id=${encodeURIComponent(id)}`)
  const step = await oidc.passed(username, password)
  const { pathname, search } = new URL(String(step.headers['location']))
  const left = await oidc.send('GET', pathname + search)
  for (const { headers } of [begun, page, step, left]) {
    expect(headers['referrer-policy']).toBe('no-referrer')
    expect(headers['cache-control']).toBe('no-store')
  }
})

test('a token that was issued to a client cannot manage the network, whatever rights the client’s identity has', async () => {
  const oidc = newClient()
  const { access_token: token } = await oidc.logIn(admin.username, admin.password)
  expect(await oidc.statusAt(ownIdentity, token)).toBe(200)
  const headers = { authorization: `Bearer ${token}` }
  const services = await listed(root, `${management}/services`)
  for (const app of [first, second]) {
    const thief = newClientOf(app)
    for (const path of [
      `${management}/identities`,
      `${fabric}/circuits`,
      `${fabric}/cluster/list-members`,
    ]) {
      expect([path, await thief.statusAt(path, token)]).toEqual([path, 401])
    }
    const json = { ...headers, 'content-type': 'application/json' }
    const body = JSON.stringify({ name: 'of a client', encryptionRequired: true })
    const refused = await thief.send('POST', `${management}/services`, body, json)
    expect(refused.status).toBe(401)
  }
  expect(await listed(root, `${management}/services`)).toEqual(services)
})

test('a refresh token is not accepted as an access token', async () => {
  const oidc = newClient()
  const { refresh_token: token } = await oidc.logIn((await newPerson()).username, password)
  expect(await oidc.statusAt('/oidc/userinfo', token)).toBe(401)
})

test('a session that waits for its TOTP code gets no OIDC tokens', async () => {
  const { username } = await newPersonWithCodes()
  const oidc = newClient()
  const id = await oidc.begin()
  const pending = await oidc.send('POST', '/oidc/login/password', { id, username, password })
  expect([pending.status, pending.headers['location']]).toEqual([200, undefined])
  expect((await oidc.redeem(id)).status).toBe(400)
  const left = await oidc.send('GET', `/oidc/authorize/callback?id=${encodeURIComponent(id)}`)
  expect(left.status).toBe(400)
})

test('a session that waits for its TOTP code is not accessible with a token derived from its ID', async () => {
  const { id: identityId, username } = await newPersonWithCodes()
  const oidc = newClient()
  expect((await oidc.passed(username, password)).status).toBe(200)
  const filter = encodeURIComponent(`identity="${identityId}"`)
  const sessions = await listed(root, `${management}/api-sessions?filter=${filter}`)
  const derived = new CallerOf(controller)
  const statuses: number[] = []
  for (const { id } of sessions) {
    derived.token = controller.tokenOf(String(id))
    statuses.push((await derived.get(`${client}/current-api-session`)).status)
  }
  // The first session belongs to the client that has enabled the second factor.
  expect(statuses.toSorted()).toEqual([200, 401])
})
