import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Provider } from 'oidc-provider'
import * as openid from 'openid-client'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { codeOf } from '../support/totp.ts'
import { ecKey, jwkOf, KeyServer, TestProvider } from '../support/identity-provider.ts'
import { Browser } from './support/browser.ts'
import { type Answer, isRunning, until } from './support/client.ts'
import { TestCluster } from './support/cluster.ts'
import { Front } from './support/front.ts'
import { linesOf, run } from './support/page.ts'

// Goal: each of three controllers authenticates identities through a provider that publishes its
// keys over HTTPS, and the steps of docs/administer/external-jwt.md work. The controllers are also
// a provider themselves, for a certified third-party client. All tests share one cluster.

let cluster: TestCluster
let server: KeyServer
let idp: KeyServer
let folder: string
let front: Front
const provider = new TestProvider('https://idp.test', 'flotilla')

beforeAll(async () => {
  server = await KeyServer.open([jwkOf(provider.key)])
  folder = await mkdtemp(join(tmpdir(), 'flotilla-provider-'))
  const signerCa = join(folder, 'ca.pem')
  idp = await KeyServer.open([])
  writeFileSync(signerCa, server.caPem + idp.caPem)
  front = await Front.open()
  cluster = await TestCluster.create({
    env: {
      FLOTILLA_WEB_0_ADVERTISE: front.address,
      FLOTILLA_API_RESERVED_SIGNER_HOSTS: 'true',
      FLOTILLA_API_SIGNER_CA: signerCa,
    },
  })
  // The first controller admits the others.
  front.ports = [cluster.port]
  await cluster.quickstart()
  front.ports = [1, 2, 3].map((k) => cluster.port + k - 1)
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
  await front.close()
  await server.close()
  await idp.close()
  await rm(folder, { recursive: true })
})

async function made(path: string, body: object): Promise<string> {
  const root = await cluster.loggedIn(1)
  const reply = await root.request('POST', `/edge/management/v1/${path}`, { body })
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}

async function logIn(k: number, token: string): Promise<Answer> {
  return cluster.client(k).request('POST', '/edge/client/v1/authenticate?method=ext-jwt', {
    body: {},
    headers: { authorization: `Bearer ${token}` },
  })
}

test('the commands of docs/administer/external-jwt.md work when pasted in order', async () => {
  symlinkSync(cluster.folder, join(cluster.dir, '.flotilla'))
  const { code, output } = await run(
    linesOf('administer/external-jwt.md', cluster.port),
    cluster.dir,
  )
  expect(code, `the page needs curl and openssl.\n${output}`).toBe(0)
  expect(output).toMatch(/"clientId":"overlay-clients"/)
  expect(output).toMatch(/"name":"Alice"/)
  expect(output).toMatch(/"typeId":"EXT-JWT"/)
  expect(output).toMatch(/"name":"bob@example.net"/)
})

test('a key that a signer publishes over HTTPS is accepted on each controller, and so is the signer’s next key', async () => {
  const { issuer, audience } = provider
  await made('external-jwt-signers', {
    name: 'published',
    issuer,
    audience,
    enabled: true,
    jwksEndpoint: server.url,
  })
  const id = await made('identities', { name: 'carol', type: 'User', isAdmin: false })
  for (const k of [1, 2, 3]) {
    const reply = await logIn(k, await provider.token(id))
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body.data).toMatchObject({ identityId: id })
    // A session opened at one controller works on all three.
    const other = cluster.client((k % 3) + 1)
    other.token = String(reply.headers['zt-session'])
    const own = await other.request('GET', '/edge/client/v1/current-identity')
    expect(own.status, own.text).toBe(200)
  }
  expect(server.requests).toBe(3)

  const before = await provider.token(id)
  provider.key = ecKey('next')
  server.keys = [jwkOf(provider.key)]
  for (const k of [1, 2, 3]) {
    // A controller that has fetched the keys less than a second ago fetches them again only after
    // that second.
    await until('the new key is known', async () => {
      const { status } = await logIn(k, await provider.token(id))
      return status === 200
    })
    expect((await logIn(k, before)).status).toBe(401)
  }
})

test('disabling a signer on one controller ends a session of the signer on another', async () => {
  const id = await made('identities', { name: 'dave', type: 'User', isAdmin: false })
  const opened = await logIn(2, await provider.token(id))
  expect(opened.status, opened.text).toBe(200)
  const dave = cluster.client(3)
  dave.token = String(opened.headers['zt-session'])
  const own = '/edge/client/v1/current-identity'
  expect((await dave.request('GET', own)).status).toBe(200)
  const root = await cluster.loggedIn(1)
  const filter = encodeURIComponent('name="published"')
  const found = await root.request(
    'GET',
    `/edge/management/v1/external-jwt-signers?filter=${filter}`,
  )
  const [signer] = found.body.data as { id: string }[]
  const path = `/edge/management/v1/external-jwt-signers/${signer?.id ?? ''}`
  const patched = await root.request('PATCH', path, { body: { enabled: false } })
  expect(patched.status, patched.text).toBe(200)
  await until('the session is refused', async () => {
    return (await dave.request('GET', own)).status === 401
  })
  expect((await logIn(1, await provider.token(id))).status).toBe(401)
})

test('a user who logs in at an external provider in a browser is admitted with the token of the provider', async () => {
  const issuer = `https://localhost:${idp.port}`
  const redirectUri = 'https://client.test/back'
  const key = ecKey('of-the-provider')
  const jwk = {
    ...key.privateKey.export({ format: 'jwk' }),
    kid: key.kid,
    alg: 'ES256',
    use: 'sig',
  }
  const oidc = new Provider(issuer, {
    jwks: { keys: [jwk] },
    cookies: { keys: ['a key for cookies'] },
    clients: [
      {
        client_id: 'overlay',
        token_endpoint_auth_method: 'none',
        redirect_uris: [redirectUri],
        id_token_signed_response_alg: 'ES256',
      },
    ],
  })
  const callback = oidc.callback()
  idp.answer = (request, response) => void callback(request, response)

  const signer = await made('external-jwt-signers', {
    name: 'oidc',
    issuer,
    audience: 'overlay',
    enabled: true,
    useExternalId: true,
    jwksEndpoint: `${issuer}/jwks`,
    externalAuthUrl: issuer,
    clientId: 'overlay',
    scopes: ['openid'],
    targetToken: 'ID',
  })
  const erin = { name: 'erin', type: 'User', isAdmin: false, externalId: 'erin@localhost' }
  const id = await made('identities', erin)

  // Requests the list in which a client that has not logged in yet finds the provider.
  const listed = await cluster.client(2).request('GET', '/edge/client/v1/external-jwt-signers')
  const shown = (listed.body.data as Record<string, string>[]).find((one) => one['id'] === signer)
  expect(shown).toMatchObject({ externalAuthUrl: issuer, clientId: 'overlay', targetToken: 'ID' })
  expect(shown).not.toHaveProperty('issuer')
  expect(shown).not.toHaveProperty('jwksEndpoint')
  const { externalAuthUrl = '', clientId = '' } = shown ?? {}

  const browser = new Browser(idp.caPem)
  const token = await browser.logIn(externalAuthUrl, clientId, redirectUri, 'erin@localhost')
  const reply = await logIn(3, token)
  expect(reply.status, reply.text).toBe(200)
  expect(reply.body.data).toMatchObject({ identityId: id, authenticatorId: `extJwtId:${signer}` })

  const stranger = new Browser(idp.caPem)
  const other = await stranger.logIn(externalAuthUrl, clientId, redirectUri, 'frank@localhost')
  expect((await logIn(3, other)).status).toBe(401)
})

/**
 * Sends each request on a separate connection, which the front forwards to a running controller.
 */
function fetchVia(browser: Browser): openid.CustomFetch {
  return async (url, { body, headers }) => {
    const form = body instanceof URLSearchParams ? Object.fromEntries(body) : null
    const { status, headers: told, text } = await browser.ask(new URL(url), form, headers)
    const type = told['content-type']
    const shown = type === undefined ? {} : { 'content-type': type }
    return new Response(text, { status, headers: shown })
  }
}

type Asked = Awaited<ReturnType<Browser['ask']>>

/**
 * Kills one controller at each step. It first restarts the previously killed controller, so that
 * two of three run at each step.
 */
class Killer {
  #dead = 0

  /** @param whom `leader` causes an election; `follower` does not. */
  async kill(whom: 'leader' | 'follower' = 'follower'): Promise<void> {
    await this.#choose(whom)
    await this.#killChosen()
  }

  /** Kills the controller that received a request, just before or while it answers. */
  async killAmid(
    whom: 'leader' | 'follower',
    ask: (onSent: () => void) => Promise<Asked>,
  ): Promise<Asked | null> {
    await this.#choose(whom)
    const all = front.ports
    front.ports = [cluster.port + this.#dead - 1]
    const { promise: sent, resolve } = Promise.withResolvers<void>()
    const answer = ask(resolve).catch(() => null)
    await sent
    front.ports = all
    await this.#killChosen()
    return await answer
  }

  /** Restarts the controller that was killed last. */
  async restart(): Promise<void> {
    const before = this.#dead
    if (before === 0) return
    cluster.run(before)
    this.#dead = 0
    await until(`ctrl${before} is back`, async () => {
      const members = await cluster.status(before)
      return members.every(({ lastContactMs }) => lastContactMs !== null)
    })
  }

  async #choose(whom: 'leader' | 'follower'): Promise<void> {
    const before = this.#dead
    await this.restart()
    const leader = await cluster.leader()
    this.#dead =
      whom === 'leader' ? leader : ([1, 2, 3].find((k) => k !== leader && k !== before) ?? 1)
  }

  async #killChosen(): Promise<void> {
    const pid = cluster.pid(this.#dead)
    cluster.kill(this.#dead)
    await until('it is dead', () => Promise.resolve(!isRunning(pid)))
    // A step that writes waits for the next leader, as a user at a page would wait.
    const alive = [1, 2, 3].find((k) => k !== this.#dead) ?? 1
    await until('a leader', async () => {
      const members = await cluster.status(alive)
      return members.some(({ id, role }) => role === 'leader' && id !== `ctrl${this.#dead}`)
    })
  }
}

const killer = new Killer()

test('a certified OIDC client can log in although a controller is killed after each step', async () => {
  const { username, password, ca } = cluster.admin
  const browser = new Browser(readFileSync(ca, 'utf8'))
  const issuer = `https://${front.address}/oidc`
  const options = { [openid.customFetch]: fetchVia(browser) }
  const config = await openid.discovery(new URL(issuer), 'native', {}, openid.None(), options)
  // The ID token is signed by the controller that answered, which can be any of the three.
  openid.enableNonRepudiationChecks(config)
  const verifier = openid.randomPKCECodeVerifier()
  const [state, nonce] = [openid.randomState(), openid.randomNonce()]
  const url = openid.buildAuthorizationUrl(config, {
    redirect_uri: 'http://127.0.0.1:9/auth/callback',
    scope: 'openid offline_access',
    code_challenge: await openid.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    nonce,
  })
  await killer.kill()
  const begun = await browser.ask(url)
  const page = new URL(begun.headers.location ?? '', url)
  const id = page.searchParams.get('authRequestID') ?? ''
  await killer.kill()
  const step = await browser.ask(new URL('/oidc/login/password', url), { id, username, password })
  await killer.kill()
  const left = await browser.ask(new URL(step.headers.location ?? '', url))
  await killer.kill('leader')
  const tokens = await openid.authorizationCodeGrant(config, new URL(left.headers.location ?? ''), {
    pkceCodeVerifier: verifier,
    expectedState: state,
    expectedNonce: nonce,
    idTokenExpected: true,
  })
  const subject = tokens.claims()?.sub ?? ''
  await killer.kill()
  const renewed = await openid.refreshTokenGrant(config, tokens.refresh_token ?? '')
  await killer.kill()
  const told = await openid.fetchUserInfo(config, renewed.access_token, subject)
  expect(told).toMatchObject({ sub: subject, name: 'Default Admin' })
  await killer.kill()
  await openid.tokenRevocation(config, renewed.refresh_token ?? '')
  await expect(openid.refreshTokenGrant(config, renewed.refresh_token ?? '')).rejects.toMatchObject(
    {
      error: 'invalid_grant',
    },
  )
})

/**
 * An identity whose log-in needs a password and a code. It uses recovery codes, because a
 * time-based code is valid only once per time step.
 */
async function withSecondFactor(username: string, password: string): Promise<string[]> {
  const identityId = await made('identities', { name: username, type: 'User', isAdmin: false })
  await made('authenticators', { method: 'updb', identityId, username, password })
  const client = cluster.client(1)
  const own = '/edge/client/v1'
  const body = { username, password }
  const opened = await client.request('POST', `${own}/authenticate?method=password`, { body })
  client.token = String((opened.body.data as { token: string }).token)
  const mfa = `${own}/current-identity/mfa`
  expect((await client.request('POST', mfa)).status).toBe(201)
  const shown = (await client.request('GET', mfa)).body.data as {
    provisioningUrl: string
    recoveryCodes: string[]
  }
  const code = codeOf(shown.provisioningUrl, Date.now())
  const verified = await client.request('POST', `${mfa}/verify`, { body: { code } })
  expect(verified.status, verified.text).toBe(200)
  return shown.recoveryCodes
}

test('killing a controller during any step of a log-in causes at most one restart of the log-in', async () => {
  // The former test may have stopped the controller to which the following requests go.
  await killer.restart()
  const [username, password] = ['heidi', 'a password of its own']
  const codes = await withSecondFactor(username, password)
  const browser = new Browser(readFileSync(cluster.admin.ca, 'utf8'))
  const at = (path: string): URL => new URL(path, `https://${front.address}`)
  const json = { accept: 'application/json' }

  /** @returns the access token; null: a step got no answer, or its answer was not the next step. */
  async function logIn(fatal: string): Promise<string | null> {
    const verifier = openid.randomPKCECodeVerifier()
    const redirect = 'http://127.0.0.1:9/auth/callback'
    const step = (name: string, path: string, form: Record<string, string> | null = null) => {
      const ask = (onSent?: () => void) => browser.ask(at(path), form, json, onSent)
      if (name !== fatal) return ask()
      // Verifying a code is a write, so the leader processes it.
      return killer.killAmid(name === 'code' ? 'leader' : 'follower', ask)
    }
    const query = new URLSearchParams({
      client_id: 'native',
      redirect_uri: redirect,
      response_type: 'code',
      scope: 'openid offline_access',
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    const begun = await step('authorize', `/oidc/authorize?${query}`)
    const page = begun?.headers.location ?? null
    if (page === null) return null
    const id = at(page).searchParams.get('authRequestID') ?? ''
    const passed = await step('password', '/oidc/login/password', { id, username, password })
    if (passed?.status !== 200) return null
    const code = codes.shift() ?? ''
    const left = await step('code', '/oidc/login/totp', { id, code })
    if (left?.status !== 302) return null
    const { pathname, search } = at(left.headers.location ?? '/')
    const back = await step('callback', pathname + search)
    if (back?.status !== 302) return null
    const tokens = await step('token', '/oidc/oauth/token', {
      grant_type: 'authorization_code',
      client_id: 'native',
      redirect_uri: redirect,
      code_verifier: verifier,
      code: new URL(back.headers.location ?? '').searchParams.get('code') ?? '',
    })
    return (JSON.parse(tokens?.text ?? '{}') as { access_token?: string }).access_token ?? null
  }

  for (const fatal of ['authorize', 'password', 'code', 'callback', 'token']) {
    const token = (await logIn(fatal)) ?? (await logIn('none'))
    const headers = { ...json, authorization: `Bearer ${token}` }
    const own = await browser.ask(at('/edge/client/v1/current-identity'), null, headers)
    expect(own.status, `${fatal}: ${own.text}`).toBe(200)
  }
})
