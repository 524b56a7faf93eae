import { createHash } from 'node:crypto'

import { describe, expect, test } from 'vitest'

import { management } from '../../api/support/caller.ts'
import { OidcClient, parameterOf } from '../../api/support/oidc.ts'
import { claimsOf } from '../../api/support/network.ts'
import { password, twoControllers } from './support.ts'

// The attack: somebody redeems the code of another person without the PKCE code verifier, has it
// sent to a foreign redirect URI, shows a log-in page to another person in a frame, or lets a
// foreign host name act as the controller.

const { root, first, second, newClient, newPerson } = await twoControllers()

describe('PKCE in a log-in', () => {
  test.each([
    ['no challenge', { code_challenge: '', code_challenge_method: '' }],
    ['no method', { code_challenge_method: '' }],
    ['the method plain', { code_challenge_method: 'plain' }],
    ['the method in lower case', { code_challenge_method: 's256' }],
    ['a challenge that is too short', { code_challenge: 'c'.repeat(42) }],
    ['a challenge that is not base64url', { code_challenge: '+'.repeat(43) }],
  ])('refuses an authorization request with %s', async (_what, changes) => {
    const refused = await newClient().authorize(changes)
    expect([refused.status, refused.json['error']]).toEqual([400, 'invalid_request'])
    expect(refused.headers['location']).toBeUndefined()
  })

  test.each([
    ['no code verifier', ''],
    ['the challenge itself as code verifier', 'challenge'],
    ['a verifier that is too short', 'v'.repeat(42)],
    ['a verifier that is too long', 'v'.repeat(129)],
    ['a verifier with invalid characters', `${'v'.repeat(43)}+`],
  ])('prevents the redemption of the code with %s', async (_what, given) => {
    const { username } = await newPerson()
    const oidc = newClient()
    const verifier = given === '' || given === 'challenge' ? oidc.verifier : given
    const challenge = createHash('sha256').update(verifier).digest('base64url')
    const id = await oidc.begin({ code_challenge: challenge })
    const step = await oidc.send('POST', '/oidc/login/password', { id, username, password })
    const shown = given === 'challenge' ? challenge : given
    const refused = await oidc.redeem(await oidc.codeOf(step), { code_verifier: shown })
    expect([refused.status, refused.json['error']]).toEqual([400, 'invalid_grant'])
  })
})

/** Some parsers read each of these as a permitted address. */
const lookalikes = [
  'https://evil.example/auth/callback',
  'http://localhost.evil.example/auth/callback',
  'http://localhost:8080@evil.example/auth/callback',
  'http://evil.example:8080#@localhost/auth/callback',
  'http://evil.example?localhost/auth/callback',
  'http://evil.example\\@localhost:8080/auth/callback',
  'http://localhost\\.evil.example/auth/callback',
  'http://127.0.0.1.evil.example/auth/callback',
  'http://127.1/auth/callback',
  'http://2130706433/auth/callback',
  'http://0x7f000001/auth/callback',
  'http://0177.0.0.1/auth/callback',
  'http://127.0.0.2/auth/callback',
  'http://[::1]/auth/callback',
  'http://[::ffff:127.0.0.1]/auth/callback',
  'http://0.0.0.0/auth/callback',
  'http://localhost./auth/callback',
  'http://LOCALHOST:8080/auth/callback',
  'HTTP://localhost:8080/auth/callback',
  'http://loc\talhost:8080/auth/callback',
  ' http://localhost:8080/auth/callback',
  'http://localhost:8080/auth/callback/',
  'http://localhost:8080/auth/callback/../../steal',
  'http://localhost:8080/auth/../auth/callback',
  'http://localhost:8080/auth/callback%2f..',
  'http://localhost:8080//auth/callback',
  'http://localhost:8080/auth/callback?next=https://evil.example',
  'http://localhost:8080/auth/callback#x',
  'http://user@localhost:8080/auth/callback',
  'http://localhost:99999/auth/callback',
  'http:localhost:8080/auth/callback',
  '//localhost:8080/auth/callback',
  'ftp://localhost:8080/auth/callback',
  'javascript://localhost/auth/callback',
  'data://localhost/auth/callback',
  'openziti://auth/callback/more',
  'openziti://auth/callback?x',
  'openziti://evil.example/callback',
  'flotilla://auth/callback',
  'http://localhost:1280/auth/logout',
  'http://localhost:8080/console/',
  'https://127.0.0.1:8443/console/',
  'https://evil.example/console/',
  'http://controller.example:1280/console/',
  'https://localhost:1280/console/services',
  'https://localhost:1280/console/?x',
  'http://controller.example:1280/auth/callback',
  `http://localhost:8080/auth/callback${'/'.repeat(300)}`,
]

test.each(lookalikes)(
  'the redirect URI %j does not receive a code or an error',
  async (redirect_uri) => {
    const oidc = newClient()
    for (const changes of [{}, { prompt: 'none' }, { response_type: 'token' }]) {
      const refused = await oidc.authorize({ redirect_uri, ...changes })
      expect([refused.status, refused.headers['location']]).toEqual([400, undefined])
    }
  },
)

test.each([
  'http://localhost/auth/callback',
  'http://localhost:65535/auth/callback',
  'https://127.0.0.1:8443/auth/callback',
  'openziti://auth/callback',
  'https://localhost:1280/auth/callback',
  'https://localhost:1280/console/',
])('a client may use %s as its redirect URI', async (redirect_uri) => {
  expect((await newClient().authorize({ redirect_uri })).status).toBe(302)
})

test('ending an OIDC session never redirects to a foreign address', async () => {
  const oidc = newClient()
  const tokens = await oidc.logIn((await newPerson()).username, password)
  const ends = lookalikes.map((uri) => uri.replace('callback', 'logout'))
  for (const uri of [...ends, 'http://localhost:8080/auth/callback']) {
    if (uri === 'http://localhost:1280/auth/logout') continue
    const query = new URLSearchParams({ post_logout_redirect_uri: uri, state: 's' })
    const refused = await oidc.send('GET', `/oidc/end_session?${query.toString()}`)
    expect([uri, refused.status, refused.headers['location']]).toEqual([uri, 400, undefined])
  }
  const own = 'http://localhost:8080/auth/logout'
  const query = new URLSearchParams({ post_logout_redirect_uri: own, state: 's' })
  const left = await oidc.send('GET', `/oidc/end_session?${query.toString()}`)
  expect(left.headers['location']).toBe(`${own}?state=s`)
  expect(await oidc.statusAt('/oidc/userinfo', tokens.access_token)).toBe(200)
})

describe('the page of an OIDC log-in', () => {
  test('runs no script, loads nothing, and cannot be framed', async () => {
    const oidc = newClient()
    const id = await oidc.begin()
    const page = await oidc.send('GET', `/oidc/login/password?id=${encodeURIComponent(id)}`)
    const policy = String(page.headers['content-security-policy'])
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("form-action 'self' http://localhost:8080")
    expect(policy).not.toContain('unsafe')
    expect(page.headers['x-frame-options']).toBe('DENY')
    expect(page.text).not.toMatch(/<script|src=|https?:/)
  })

  test('contains no text from an invented log-in ID', async () => {
    const id = '"><script>alert(1)</script>'
    const page = await newClient().send('GET', `/oidc/login/cert?id=${encodeURIComponent(id)}`)
    expect(page.status).toBe(401)
    expect(page.text).not.toContain('<script')
    expect(page.headers['auth-request-id']).toBeUndefined()
  })

  test('has a form that is accepted from the page’s own origin, and from other origins only if a script sends it', async () => {
    const { username } = await newPerson()
    const oidc = newClient()
    const form = { id: await oidc.begin(), username, password }
    const from = (site: string, mode: string) =>
      oidc.send('POST', '/oidc/login/password', form, {
        accept: 'text/html',
        'sec-fetch-site': site,
        'sec-fetch-mode': mode,
      })
    expect((await from('cross-site', 'navigate')).status).toBe(401)
    expect((await from('same-site', 'navigate')).status).toBe(401)
    expect((await from('none', 'navigate')).status).toBe(401)
    expect((await from('same-origin', 'navigate')).status).toBe(302)
    // A console from another origin reads the response itself.
    expect((await from('cross-site', 'cors')).status).toBe(302)
  })
})

describe('a controller as an OIDC provider', () => {
  test.each([
    'evil.example',
    'evil.example:1280',
    'localhost',
    'localhost:1281',
    'localhost:1280.evil.example',
    'localhost.:1280',
    'localhost:1280@evil.example',
    '127.0.0.1:1280:1280',
  ])('does not serve the host name %s', async (host) => {
    const oidc = newClient()
    oidc.host = host
    const replies = [
      await oidc.send('GET', '/oidc/.well-known/openid-configuration'),
      await oidc.authorize(),
    ]
    for (const { status, text } of replies) {
      expect(status).toBeGreaterThanOrEqual(400)
      expect(text).not.toContain('evil.example')
    }
  })

  test('includes its issuer in each response of a log-in, before the code', async () => {
    const { username } = await newPerson()
    const oidc = newClient()
    const step = await oidc.passed(username, password)
    const { pathname, search } = new URL(String(step.headers['location']))
    const left = await oidc.send('GET', pathname + search)
    const { searchParams } = new URL(String(left.headers['location']))
    expect([...searchParams.keys()]).toEqual(['iss', 'state', 'code'])
    const issuer = `https://${oidc.host}/oidc`
    expect(searchParams.get('iss')).toBe(issuer)
    const { json } = await oidc.redeem(searchParams.get('code') ?? '')
    expect(claimsOf(json['id_token'])['iss']).toBe(issuer)
    const none = await oidc.authorize({ prompt: 'none' })
    expect(parameterOf(none.headers['location'], 'iss')).toBe(issuer)
  })

  test('continues a log-in that began at another controller', async () => {
    const { username } = await newPerson()
    const [here, there] = [new OidcClient({ app: first }), new OidcClient({ app: second })]
    const id = await here.begin()
    const step = await there.send('POST', '/oidc/login/password', { id, username, password })
    const code = await here.codeOf(step)
    const { status } = await there.redeem(code, { code_verifier: here.verifier })
    expect(status).toBe(200)
  })
})

test('a redirect URI in the controller settings permits only exactly this URI, and permits nothing if its scheme is javascript', async () => {
  const own = 'https://console.example/zac/callback'
  const out = 'https://console.example/out'
  const oidc = { redirectUris: [own, 'javascript:alert(1)'], postLogoutUris: [out] }
  const made = await root.call('POST', `${management}/controller-settings`, {
    controllerId: 'global',
    oidc,
  })
  expect(made.status, made.text).toBe(201)
  const client = newClient()
  for (const [redirect_uri, status] of [
    [own, 302],
    [`${own}/`, 400],
    [`${own}?x`, 400],
    ['https://console.example/', 400],
    [out, 400],
    ['javascript:alert(1)', 400],
  ] as const) {
    expect([redirect_uri, (await client.authorize({ redirect_uri })).status]).toEqual([
      redirect_uri,
      status,
    ])
  }
  const query = (uri: string): string =>
    new URLSearchParams({ post_logout_redirect_uri: uri }).toString()
  expect((await client.send('GET', `/oidc/end_session?${query(out)}`)).status).toBe(302)
  expect((await client.send('GET', `/oidc/end_session?${query(own)}`)).status).toBe(400)
})
