import { beforeAll, describe, expect, test } from 'vitest'

import { newShortId } from '../../src/lib/random.ts'
import { CallerOf, client, management } from './support/caller.ts'
import { controllerWithProvider } from './support/external-jwt.ts'
import { turnOnMfa } from './support/mfa.ts'
import { claimsOf, made } from './support/network.ts'
import { OidcClient, type OidcReply } from './support/oidc.ts'
import { raiseLevel } from './support/raise-level.ts'

const { controller, root, provider, signerId, newPolicy } = await controllerWithProvider()
/** A controller that remembers only one verified access token at a time. */
const small = await controllerWithProvider({ verifiedTokensMax: 1 })
const password = 'a long enough password'
const ownSession = `${client}/current-api-session`
const ownIdentity = `${client}/current-identity`
let bySigner = ''

beforeAll(async () => {
  await raiseLevel(controller)
  bySigner = await newPolicy('asks for a token', {
    secondary: { requireTotp: false, requireExtJwtSigner: signerId },
  })
})

async function person(fields: object = {}): Promise<{ id: string; username: string }> {
  const username = `name-${newShortId()}`
  const body = { name: username, type: 'User', isAdmin: false, ...fields }
  const id = await made(root, `${management}/identities`, body)
  const credential = { method: 'updb', identityId: id, username, password }
  await made(root, `${management}/authenticators`, credential)
  return { id, username }
}

function get(url: string, ...bearers: readonly string[]): Promise<OidcReply> {
  const [first] = bearers
  const headers = first === undefined ? {} : { authorization: `Bearer ${first}` }
  return new OidcClient(controller).send('GET', url, undefined, headers)
}

function challengeOf({ status, headers }: OidcReply): string {
  expect(status).toBe(401)
  return String(headers['www-authenticate'])
}

const told = {
  missing: 'no matching token was provided',
  invalid: 'token is invalid',
  expired: 'token expired',
} as const
const bearerChallenge = (error: keyof typeof told): string =>
  `Bearer realm="openziti-oidc" error="${error}" error_description="${told[error]}"`

describe('the challenge of a refused request', () => {
  test('names both kinds of tokens if the request has no token', async () => {
    const both = `zt-session realm="zt-session" error="missing" error_description="${told.missing}",${bearerChallenge('missing')}`
    expect(challengeOf(await get(ownIdentity))).toBe(both)
    const { username } = await person()
    const { refresh_token: refresh } = await new OidcClient(controller).logIn(username, password)
    // The server does not accept a refresh token as a session token.
    expect(challengeOf(await get(ownIdentity, refresh))).toBe(both)
  })

  test('reports an access token that is malformed or has no session', async () => {
    const { username } = await person()
    const oidc = new OidcClient(controller)
    const tokens = await oidc.logIn(username, password)
    expect(challengeOf(await get(ownIdentity, 'x'))).toBe(bearerChallenge('invalid'))
    const changed = `${tokens.access_token.slice(0, -4)}AAAA`
    expect(challengeOf(await get(ownIdentity, changed))).toBe(bearerChallenge('invalid'))
    await oidc.send('POST', '/oidc/revoke', { token: tokens.refresh_token })
    expect(challengeOf(await get(ownIdentity, tokens.access_token))).toBe(
      bearerChallenge('invalid'),
    )
  })

  test('reports an access token that has expired', async () => {
    const { username } = await person()
    const { access_token: token } = await new OidcClient(controller).logIn(username, password)
    controller.clock.advance(controller.parts.limits.accessTokenMs)
    expect(challengeOf(await get(ownIdentity, token))).toBe(bearerChallenge('expired'))
  })

  test('is absent if the operation does not require a session', async () => {
    const { status, headers } = await get(`${client}/version`, 'x')
    expect([status, headers['www-authenticate']]).toEqual([200, undefined])
  })
})

test('a session shows the expiry of its access token, and the time when the session started', async () => {
  const { id: identityId, username } = await person()
  const oidc = new OidcClient(controller)
  const tokens = await oidc.logIn(username, password)
  const openedAt = new Date(controller.clock.nowMs()).toISOString()
  controller.clock.advance(60_000)
  const { json } = await oidc.refresh(tokens.refresh_token)
  const token = String(json['access_token'])
  controller.clock.advance(30_000)
  const shown = await get(ownSession, token)
  const { data } = shown.json as { data: Record<string, unknown> }
  const { exp = 0, z_asid } = claimsOf(token)
  expect(data).toMatchObject({
    id: z_asid,
    token,
    identityId,
    createdAt: openedAt,
    expiresAt: new Date(exp * 1000).toISOString(),
    expirationSeconds: 1800 - 30 - 1,
  })
  expect(shown.headers['expiration-seconds']).toBe(String(data['expirationSeconds']))
})

describe('a log-in whose policy requires an external JWT', () => {
  test('continues once a request of the log-in contains a JWT for the same identity', async () => {
    const { id: identityId, username } = await person({ authPolicyId: bySigner })
    const oidc = new OidcClient(controller)
    const id = await oidc.begin()
    const form = { id, username, password }
    const logIn = (bearer: string | null): Promise<OidcReply> =>
      oidc.send(
        'POST',
        '/oidc/login/password',
        form,
        bearer === null ? {} : { authorization: `Bearer ${bearer}` },
      )
    const realm = 'Bearer realm="openziti-secondary-ext-jwt"'
    const exp = Math.floor(controller.clock.nowMs() / 1000) - 60
    for (const [bearer, error] of [
      [null, 'missing'],
      [await provider.token('alice-id'), 'invalid'],
      [await provider.token(identityId, { claims: { exp } }), 'expired'],
      ['x.y.z', 'missing'],
    ] as const) {
      const step = await logIn(bearer)
      expect([step.status, step.headers['totp-required']]).toEqual([200, undefined])
      expect(step.json['authQueries']).toMatchObject([{ typeId: 'EXT-JWT', id: signerId }])
      expect(step.headers['www-authenticate']).toContain(`${realm} error="${error}"`)
    }
    const passed = await logIn(await provider.token(identityId))
    expect(passed.status).toBe(302)
    const { json } = await oidc.redeem(await oidc.codeOf(passed))
    // Each request must also contain the provider's token; this one does not.
    const token = String(json['access_token'])
    expect(challengeOf(await get(ownIdentity, token))).toContain(`${realm} error="missing"`)
  })

  test('accepts the JWT and a TOTP code in either order if both are required', async () => {
    const { id: identityId, username } = await person()
    const caller = new CallerOf(controller)
    await caller.logIn({ username, password }, client)
    const app = await turnOnMfa(controller, caller)
    await root.call('PATCH', `${management}/identities/${identityId}`, { authPolicyId: bySigner })
    const headers = { authorization: `Bearer ${await provider.token(identityId)}` }
    const oidc = new OidcClient(controller)
    const [first = '', second = ''] = app.recoveryCodes
    const begun = await oidc.begin()
    const form = { id: begun, username, password }
    const step = await oidc.send('POST', '/oidc/login/password', form, headers)
    expect(step.json['authQueries']).toMatchObject([{ typeId: 'TOTP' }])
    const done = await oidc.send('POST', '/oidc/login/totp', { id: begun, code: first })
    expect(done.status).toBe(302)
    const other = await oidc.begin()
    const bare = { id: other, username, password }
    const both = await oidc.send('POST', '/oidc/login/password', bare)
    expect(both.json['authQueries']).toMatchObject([{ typeId: 'TOTP' }, { typeId: 'EXT-JWT' }])
    const coded = await oidc.send('POST', '/oidc/login/totp', { id: other, code: second })
    expect(coded.json['authQueries']).toMatchObject([{ typeId: 'EXT-JWT' }])
    expect((await oidc.send('POST', '/oidc/login/password', bare, headers)).status).toBe(302)
  })
})

test('the log-in page shows that an external JWT is missing: after the password, or after the TOTP code if the user has MFA', async () => {
  const { id: identityId, username } = await person()
  const caller = new CallerOf(controller)
  await caller.logIn({ username, password }, client)
  const { recoveryCodes } = await turnOnMfa(controller, caller)
  const oidc = new OidcClient(controller)
  const accept = { accept: 'text/html' }
  const enter = async (id: string, headers = accept): Promise<OidcReply> =>
    await oidc.send('POST', '/oidc/login/password', { id, username, password }, headers)
  const expectMissing = (page: OidcReply): void => {
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(page.text).toContain('A token is missing')
    expect(page.text).toContain(`You also need a token of idp 1 to log in`)
    expect(page.text).not.toContain('<form')
  }
  await root.call('PATCH', `${management}/identities/${identityId}`, { authPolicyId: bySigner })
  const id = await oidc.begin()
  expect((await enter(id)).text).toContain('Enter the code that your authenticator app shows')
  const coded = { id, code: recoveryCodes[0] ?? '' }
  expectMissing(await oidc.send('POST', '/oidc/login/totp', coded, accept))
  const { username: other } = await person({ authPolicyId: bySigner })
  const form = { id: await oidc.begin(), username: other, password }
  expectMissing(await oidc.send('POST', '/oidc/login/password', form, accept))
})

describe('the exchange of a TOTP code for tokens', () => {
  test('succeeds for a valid code in an OIDC session; if the code is repeated, the response contains the first time of issue again', async () => {
    const { id: identityId, username } = await person()
    const caller = new CallerOf(controller)
    await caller.logIn({ username, password }, client)
    const app = await turnOnMfa(controller, caller)
    const oidc = new OidcClient(controller)
    const id = await oidc.begin()
    await oidc.send('POST', '/oidc/login/password', { id, username, password })
    const step = await oidc.send('POST', '/oidc/login/totp', { id, code: app.freshCode() })
    const { json } = await oidc.redeem(await oidc.codeOf(step))
    const access = String(json['access_token'])
    const give = (code: string): Promise<OidcReply> =>
      oidc.send('POST', `${ownSession}/totp-token`, JSON.stringify({ code }), {
        authorization: `Bearer ${access}`,
        'content-type': 'application/json',
      })
    const code = app.freshCode()
    const given = await give(code)
    expect(given.status, given.text).toBe(200)
    const { data } = given.json as { data: { token: string; issuedAt: string } }
    const claims = claimsOf(data.token)
    expect(claims).toMatchObject({
      iss: `https://${oidc.host}`,
      sub: identityId,
      aud: ['native'],
      z_asid: claimsOf(access)['z_asid'],
      z_t: 't',
    })
    expect(claims.exp).toBeUndefined()
    controller.clock.advance(5000)
    const repeated = (await give(code)).json as { data: { token: string; issuedAt: string } }
    expect(repeated.data.issuedAt).toBe(data.issuedAt)
    expect(claimsOf(repeated.data.token).iat).toBe(claims.iat)
    const [recovery = ''] = app.recoveryCodes
    for (const wrong of [app.wrongCode(), recovery, '']) {
      expect((await give(wrong)).status).toBe(400)
    }
    expect((await get(ownIdentity, data.token)).status).toBe(401)
    expect((await oidc.refresh(data.token)).status).toBe(400)
  })

  test('is refused if the identity has no second factor', async () => {
    const { username } = await person()
    const oidc = new OidcClient(controller)
    const { access_token: access } = await oidc.logIn(username, password)
    const reply = await oidc.send('POST', `${ownSession}/totp-token`, '{"code":"123456"}', {
      authorization: `Bearer ${access}`,
      'content-type': 'application/json',
    })
    expect([reply.status, reply.text]).toEqual([409, expect.stringContaining('MFA_NOT_ENROLLED')])
  })
})

test('a request that waits in a queue is accepted even if the cache has evicted its token, unless the token was revoked', async () => {
  await raiseLevel(small.controller)
  const logIn = async (): Promise<string> => {
    const name = `name-${newShortId()}`
    const body = { name, type: 'User', isAdmin: false }
    const identityId = await made(small.root, `${management}/identities`, body)
    const credential = { method: 'updb', identityId, username: name, password }
    await made(small.root, `${management}/authenticators`, credential)
    return (await new OidcClient(small.controller).logIn(name, password)).access_token
  }
  const [waiting, revoked, other] = [await logIn(), await logIn(), await logIn()]
  const third = await logIn()
  const ask = (token: string, more: object = {}) => {
    const headers = { authorization: `Bearer ${token}`, ...more }
    return new OidcClient(small.controller).send('GET', ownIdentity, undefined, headers)
  }
  // The first use of a session writes to the log.
  for (const token of [waiting, revoked, third]) expect((await ask(token)).status).toBe(200)
  const index = String((await ask(other)).headers['net-index']).split(':')
  const next = { 'net-min-index': `${index[0]}:${Number(index[1]) + 2}` }
  const answers = [ask(waiting, next), ask(revoked, next)]
  // Each token evicts the previous one from the memory for verified tokens.
  for (const token of [third, other, third, other]) expect((await ask(token)).status).toBe(200)
  const type = { id: String(claimsOf(revoked)['jti']), type: 'JTI' }
  const expiresAt = new Date(small.controller.clock.nowMs() + 600_000).toISOString()
  await made(small.root, `${management}/revocations`, { ...type, expiresAt })
  await made(small.root, `${management}/services`, { name: 'more', encryptionRequired: false })
  const statuses = (await Promise.all(answers)).map(({ status }) => status)
  expect(statuses).toEqual([200, 401])
})
