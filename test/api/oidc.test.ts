import { beforeAll, describe, expect, test } from 'vitest'

import { CallerOf, client, management } from './support/caller.ts'
import { admin } from './support/controller.ts'
import { controllerForFile } from './support/for-file.ts'
import { OidcClient, parameterOf, redirectUri } from './support/oidc.ts'
import { claimsOf } from './support/network.ts'
import { turnOnMfa } from './support/mfa.ts'
import { raiseLevel } from './support/raise-level.ts'
import { newShortId } from '../../src/lib/random.ts'
import type { Observation } from '../../src/ports/observations.ts'

const facts: Observation[] = []
const { controller, root } = await controllerForFile({}, undefined, {
  publishFact: (fact) => {
    facts.push(fact)
  },
})

beforeAll(async () => {
  await raiseLevel(controller)
})

function newClient(): OidcClient {
  return new OidcClient(controller)
}

async function person(): Promise<{ id: string; username: string; password: string }> {
  const username = `name-${newShortId()}`
  const password = 'a long enough password'
  const made = await root.call('POST', `${management}/identities`, {
    name: username,
    type: 'User',
    isAdmin: false,
  })
  const { id } = made.body.data as { id: string }
  await root.call('POST', `${management}/authenticators`, {
    method: 'updb',
    identityId: id,
    username,
    password,
  })
  return { id, username, password }
}

async function bearer(token: string, url = `${client}/current-api-session`): Promise<number> {
  const answer = await controller.app.inject({
    method: 'GET',
    url,
    headers: { host: 'any', authorization: `Bearer ${token}` },
  })
  return answer.statusCode
}

/** A token request with its parameters in the query, a JSON content type and no body. */
function askByQuery(
  oidc: OidcClient,
  parameters: Readonly<Record<string, string>>,
): ReturnType<OidcClient['send']> {
  const url = `/oidc/oauth/token?${new URLSearchParams(parameters).toString()}`
  return oidc.send('POST', url, undefined, { 'content-type': 'application/json' })
}

describe('a log-in by the authorization code flow', () => {
  test('returns tokens for the REST APIs, and opens one session', async () => {
    const { id, username, password } = await person()
    const oidc = newClient()
    const authorized = await oidc.authorize()
    expect(authorized.status).toBe(302)
    expect(authorized.headers['location']).toMatch(/^\/oidc\/login\/password\?authRequestID=/)
    const flow = parameterOf(authorized.headers['location'], 'authRequestID')
    const step = await oidc.send('POST', '/oidc/login/password', { id: flow, username, password })
    expect(step.status).toBe(302)
    const { pathname, search } = new URL(String(step.headers['location']))
    const left = await oidc.send('GET', pathname + search)
    expect(left.status).toBe(302)
    const location = String(left.headers['location'])
    expect(location.startsWith(`${redirectUri}?`)).toBe(true)
    expect(parameterOf(location, 'state')).toBe('a state')
    const { status, json } = await oidc.redeem(parameterOf(location, 'code'))
    expect(status).toBe(200)
    expect(json).toMatchObject({ token_type: 'Bearer', expires_in: 1800 })
    const claims = claimsOf(json['access_token'])
    expect(claims).toMatchObject({
      sub: id,
      aud: ['native'],
      z_t: 'a',
      amr: ['password'],
      z_ia: false,
      scopes: ['openid', 'offline_access'],
    })
    expect(claimsOf(json['refresh_token'])).toMatchObject({ z_t: 'r', z_asid: claims['z_asid'] })
    expect(claimsOf(json['id_token'])).toMatchObject({ nonce: 'a nonce', name: username })
    expect(await bearer(String(json['access_token']))).toBe(200)
    expect(await bearer(String(json['refresh_token']))).toBe(401)
    const found = await root.get(`${management}/api-sessions?filter=identity="${id}"`)
    expect(found.body.data).toMatchObject([{ id: claims['z_asid'] }])
  })

  test('refuses a wrong password, an unknown authorization request id, and a body that is not a form', async () => {
    const { username } = await person()
    const oidc = newClient()
    const id = await oidc.begin()
    const wrong = { id, username, password: 'not the password' }
    const refused = await oidc.send('POST', '/oidc/login/password', wrong)
    expect([refused.status, refused.json['code']]).toEqual([401, 'INVALID_AUTH'])
    const unknown = await oidc.send('POST', '/oidc/login/password', { ...wrong, id: 'made up' })
    expect([unknown.status, unknown.json['code']]).toEqual([401, 'UNAUTHORIZED'])
    const multipart = await oidc.send('POST', '/oidc/login/password', 'x', {
      'content-type': 'multipart/form-data',
    })
    expect([multipart.status, multipart.json['code']]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
  })

  test('accepts the id of the authorization request as a query parameter, and accepts a JSON body', async () => {
    const { username, password } = await person()
    const oidc = newClient()
    for (const name of ['authRequestID', 'id']) {
      const id = encodeURIComponent(await oidc.begin())
      const body = JSON.stringify({ username, password })
      const step = await oidc.send('POST', `/oidc/login/username?${name}=${id}`, body, {
        'content-type': 'application/json; charset=utf-8',
      })
      expect(step.status).toBe(302)
    }
  })

  test('asks for a TOTP code under the same log-in id if the identity has MFA', async () => {
    const { id: identityId, username, password } = await person()
    const alice = new CallerOf(controller)
    await alice.logIn({ username, password }, client)
    const { recoveryCodes } = await turnOnMfa(controller, alice)
    const oidc = newClient()
    const id = await oidc.begin()
    const early = await oidc.send('GET', `/oidc/login/auth-queries?id=${encodeURIComponent(id)}`)
    expect(early.status).toBe(401)
    const pending = await oidc.send('POST', '/oidc/login/password', { id, username, password })
    expect([pending.status, pending.headers['totp-required']]).toEqual([200, 'true'])
    expect(pending.json['authQueries']).toMatchObject([{ typeId: 'TOTP', isTotpEnrolled: true }])
    const wrong = await oidc.send('POST', '/oidc/login/totp', { id, code: '000000' })
    expect([wrong.status, wrong.json['code']]).toEqual([400, 'INVALID TOTP CODE'])
    const [code = ''] = recoveryCodes
    const right = await oidc.send('POST', '/oidc/login/totp', { id, code })
    expect(right.status).toBe(302)
    const { status, json } = await oidc.redeem(await oidc.codeOf(right))
    expect(status).toBe(200)
    expect(claimsOf(json['access_token'])).toMatchObject({
      sub: identityId,
      amr: ['password', 'totp'],
    })
    expect(await bearer(String(json['access_token']), `${client}/current-identity`)).toBe(200)
  })
})

test('an authorization request whose encrypted flow state would not fit into a URL is refused, and the longest state and nonce fit', async () => {
  const { username, password } = await person()
  const oidc = newClient()
  const id = await oidc.begin({ state: 's'.repeat(512), nonce: 'n'.repeat(512) })
  const step = await oidc.send('POST', '/oidc/login/password', { id, username, password })
  expect(step.status).toBe(302)
  const types = (length: number): string =>
    Array.from({ length: 50 }, () => 't'.repeat(length)).join(',')
  expect((await oidc.authorize({ configTypes: types(10) })).status).toBe(302)
  expect((await oidc.authorize({ configTypes: types(100) })).status).toBe(400)
})

test('a user who enters a wrong password sees the page again, and an event reports the failure', async () => {
  const { username } = await person()
  const oidc = newClient()
  const id = await oidc.begin()
  const before = facts.length
  const form = { id, username, password: 'not the password' }
  const accept = { accept: 'text/html' }
  const page = await oidc.send('POST', '/oidc/login/password', form, accept)
  expect([page.status, page.headers['content-type']]).toEqual([401, 'text/html; charset=utf-8'])
  expect(page.text).toContain('The user name or password is not right.')
  expect(facts.slice(before)).toMatchObject([
    { kind: 'logInFailed', method: 'password', reason: 'PASSWORD_WRONG' },
  ])
})

describe('OIDC tokens', () => {
  test('belong to the same session after a refresh, and become invalid with that session', async () => {
    const { id, username, password } = await person()
    const oidc = newClient()
    const first = await oidc.logIn(username, password)
    const again = await oidc.refresh(first.refresh_token)
    expect(again.status).toBe(200)
    const token = String(again.json['access_token'])
    expect(claimsOf(token)['z_asid']).toBe(claimsOf(first.access_token)['z_asid'])
    expect(claimsOf(token)['auth_time']).toBe(claimsOf(first.access_token)['auth_time'])
    expect(await bearer(token)).toBe(200)
    await root.call('POST', `${management}/identities/${id}/disable`, { durationMinutes: 0 })
    expect(await bearer(token)).toBe(401)
    const refused = await oidc.refresh(first.refresh_token)
    expect([refused.status, refused.json['error']]).toEqual([400, 'invalid_grant'])
  })

  test('are issued for parameters in the query if the body is empty, because BrowZer sends requests of this form', async () => {
    const { username, password } = await person()
    const oidc = newClient()
    const code = await oidc.codeOf(await oidc.passed(username, password))
    const grants = {
      grant_type: 'authorization_code',
      client_id: 'native',
      redirect_uri: redirectUri,
      code_verifier: oidc.verifier,
      code,
    }
    const first = await askByQuery(oidc, grants)
    expect([first.status, await bearer(String(first.json['access_token']))]).toEqual([200, 200])
    const again = await askByQuery(oidc, {
      grant_type: 'refresh_token',
      client_id: 'native',
      refresh_token: String(first.json['refresh_token']),
    })
    expect([again.status, await bearer(String(again.json['access_token']))]).toEqual([200, 200])
  })

  test('have the claims that OpenZiti clients parse if a token exchange issued them', async () => {
    const { username, password } = await person()
    const oidc = newClient()
    const first = await oidc.logIn(username, password)
    const sessionId = claimsOf(first.access_token)['z_asid']
    const again = await oidc.exchange(first.refresh_token, 'refresh_token', 'refresh_token')
    expect([again.status, again.json['token_type']]).toEqual([200, 'Bearer'])
    expect(claimsOf(again.json['access_token'])).toMatchObject({ z_t: 'a', z_asid: sessionId })
    expect(claimsOf(again.json['refresh_token'])).toMatchObject({ z_t: 'r', z_asid: sessionId })
    expect(await bearer(String(again.json['access_token']))).toBe(200)
    const id = await oidc.exchange(first.refresh_token, 'refresh_token', 'id_token')
    expect([id.status, id.json['token_type']]).toEqual([200, 'N_A'])
    expect(claimsOf(id.json['access_token'])).toMatchObject({ azp: 'native', name: username })
    expect(id.json['refresh_token']).toBeUndefined()
  })

  test('do not include a refresh token if a token exchange requests only an access token', async () => {
    const { username, password } = await person()
    const oidc = newClient()
    const { access_token: access } = await oidc.logIn(username, password)
    const refused = await oidc.exchange(access, 'access_token', 'refresh_token')
    expect([refused.status, refused.json['error']]).toEqual([400, 'invalid_request'])
    const again = await oidc.exchange(access, 'access_token', 'access_token')
    expect(again.status).toBe(200)
    expect(again.json['refresh_token']).toBeUndefined()
  })

  test('end their session immediately when they are revoked', async () => {
    const { username, password } = await person()
    const oidc = newClient()
    const { access_token: access, refresh_token: token } = await oidc.logIn(username, password)
    expect((await oidc.send('POST', '/oidc/revoke', { token: 'no token' })).status).toBe(200)
    expect(await bearer(access)).toBe(200)
    expect((await oidc.send('POST', '/oidc/revoke', { token })).status).toBe(200)
    expect(await bearer(access)).toBe(401)
    expect((await oidc.refresh(token)).status).toBe(400)
  })

  test('are refused by the userinfo endpoint once their session has ended', async () => {
    const { username, password } = await person()
    const oidc = newClient()
    const { access_token: access, refresh_token: token } = await oidc.logIn(username, password)
    const headers = { authorization: `Bearer ${access}` }
    const shown = await oidc.send('GET', '/oidc/userinfo', undefined, headers)
    expect([shown.status, shown.json['name']]).toEqual([200, username])
    await oidc.send('POST', '/oidc/revoke', { token })
    expect((await oidc.send('GET', '/oidc/userinfo', undefined, headers)).status).toBe(401)
  })

  test('are issued to a client that authenticates with HTTP Basic, but not if its Basic header is malformed or contains a secret', async () => {
    const { username, password } = await person()
    const oidc = newClient()
    const { refresh_token: token } = await oidc.logIn(username, password)
    const form = { grant_type: 'refresh_token', refresh_token: token }
    const basic = (text: string): Record<string, string> => ({
      authorization: `Basic ${Buffer.from(text).toString('base64')}`,
    })
    expect((await oidc.send('POST', '/oidc/oauth/token', form, basic('native:'))).status).toBe(200)
    for (const name of ['%:', 'native:secret']) {
      const refused = await oidc.send('POST', '/oidc/oauth/token', form, basic(name))
      expect([refused.status, refused.json['error']]).toEqual([400, 'invalid_client'])
    }
  })

  test('can be revoked one by one by their jti', async () => {
    const { username, password } = await person()
    const oidc = newClient()
    const first = await oidc.logIn(username, password)
    const next = await oidc.refresh(first.refresh_token)
    const revoke = async (token: string): Promise<void> => {
      const revocation = {
        id: claimsOf(token)['jti'],
        type: 'JTI',
        expiresAt: '2100-01-01T00:00:00Z',
      }
      expect((await root.call('POST', `${management}/revocations`, revocation)).status).toBe(201)
    }
    expect(await bearer(first.access_token)).toBe(200)
    await revoke(first.access_token)
    expect(await bearer(first.access_token)).toBe(401)
    expect(await bearer(String(next.json['access_token']))).toBe(200)
    await revoke(first.refresh_token)
    const refused = await oidc.refresh(first.refresh_token)
    expect([refused.status, refused.json['error']]).toEqual([400, 'invalid_grant'])
    expect(refused.json['error_description']).toContain('revoked')
    expect((await oidc.refresh(String(next.json['refresh_token']))).status).toBe(200)
  })

  test('are refused to a request without a grant type, with the error invalid_request', async () => {
    const refused = await newClient().refresh('any', { grant_type: '' })
    expect([refused.status, refused.json['error']]).toEqual([400, 'invalid_request'])
  })

  test('are valid only at the API (client or management) where they were first used', async () => {
    const oidc = newClient()
    const { access_token: access } = await oidc.logIn(admin.username, admin.password)
    expect(await bearer(access, `${client}/current-identity`)).toBe(200)
    expect(await bearer(access, `${management}/identities`)).toBe(401)
    const manages = (await oidc.logIn(admin.username, admin.password)).access_token
    expect(await bearer(manages, `${management}/identities`)).toBe(200)
  })
})

describe('an authorization code', () => {
  test('can be redeemed twice; a second code of the same log-in is refused and ends the session', async () => {
    const { username, password } = await person()
    const oidc = newClient()
    const id = await oidc.begin()
    const step = await oidc.send('POST', '/oidc/login/password', { id, username, password })
    const code = await oidc.codeOf(step)
    const other = await oidc.codeOf(step)
    const first = await oidc.redeem(code)
    expect(first.status).toBe(200)
    expect((await oidc.redeem(code)).status).toBe(200)
    const second = await oidc.redeem(other)
    expect([second.status, second.json['error']]).toEqual([400, 'invalid_grant'])
    expect(await bearer(String(first.json['access_token']))).toBe(401)
  })

  test.each([
    ['a wrong code verifier', { code_verifier: 'v'.repeat(43) }],
    ['the ID of another client', { client_id: 'openziti' }],
    ['another redirect URI', { redirect_uri: 'http://localhost:9/auth/callback' }],
  ])('is refused if it is redeemed with %s', async (_what, changes) => {
    const { username, password } = await person()
    const oidc = newClient()
    const id = await oidc.begin()
    const step = await oidc.send('POST', '/oidc/login/password', { id, username, password })
    const refused = await oidc.redeem(await oidc.codeOf(step), changes)
    expect([refused.status, refused.json['error']]).toEqual([400, 'invalid_grant'])
  })
})

describe('an OIDC authorization request', () => {
  test.each([
    ['client_id', 'somebody', 'invalid_client'],
    ['redirect_uri', 'https://evil.example/auth/callback', 'invalid_request'],
    ['redirect_uri', 'http://localhost:1@evil.example/auth/callback', 'invalid_request'],
    ['redirect_uri', 'http://localhost:8080/auth/callback?x=1', 'invalid_request'],
    ['redirect_uri', 'http://[::1]:8080/auth/callback', 'invalid_request'],
    ['response_type', 'token', 'unsupported_response_type'],
    ['scope', 'email', 'invalid_scope'],
    ['code_challenge_method', 'plain', 'invalid_request'],
    ['code_challenge', '', 'invalid_request'],
    ['nonce', 'n'.repeat(513), 'invalid_request'],
  ])('is refused with the parameter %s = %s', async (name, value, error) => {
    const refused = await newClient().authorize({ [name]: value })
    expect([refused.status, refused.json['error']]).toEqual([400, error])
  })

  test('gets the response 404 at a host name that the controller does not have', async () => {
    const oidc = newClient()
    oidc.host = 'evil.example:443'
    expect((await oidc.authorize()).status).toBe(404)
    expect((await oidc.send('GET', '/oidc/.well-known/openid-configuration')).status).toBe(404)
  })
})

test('discovery uses the requested host as issuer, and the keys endpoint publishes an EC key for signatures', async () => {
  const oidc = newClient()
  const { json } = await oidc.send('GET', '/oidc/.well-known/openid-configuration')
  expect(json['issuer']).toBe(`https://${oidc.host}/oidc`)
  const { json: keys } = await oidc.send('GET', '/oidc/keys')
  expect(keys['keys']).toMatchObject([{ use: 'sig', kty: 'EC' }])
})

test('the log-in page has a link back to the console only for a log-in of the console', async () => {
  const oidc = newClient()
  const back = `https://${oidc.host}/console/`
  const textFor = async (changes: Readonly<Record<string, string>>): Promise<string> => {
    const id = encodeURIComponent(await oidc.begin(changes))
    return (await oidc.send('GET', `/oidc/login/password?authRequestID=${id}`)).text
  }
  expect(await textFor({ redirect_uri: back })).toContain(`href="${back}"`)
  expect(await textFor({})).not.toContain('<a ')
})

test('the log-in page works without scripts, and cannot be shown in a frame of another page', async () => {
  const oidc = newClient()
  const id = await oidc.begin()
  const page = await oidc.send(
    'GET',
    `/oidc/login/password?authRequestID=${encodeURIComponent(id)}`,
  )
  expect([page.status, page.headers['auth-request-id']]).toEqual([200, id])
  expect(page.headers['content-security-policy']).toContain("frame-ancestors 'none'")
  expect(page.text).not.toContain('<script')
  expect(page.text).toContain('For a program on this computer')
  const unknown = await oidc.send('GET', '/oidc/login/password?authRequestID=%3Cscript%3E')
  expect(unknown.status).toBe(401)
})
