import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import { sessionHeader } from '../../src/client/cluster-client.ts'
import { ConsoleApiClient } from '../../src/console/client/api-client.ts'
import { MemberOrigins } from '../../src/console/client/members.ts'
import { TabSession } from '../../src/console/client/session.ts'
import {
  beginProviderSignIn,
  beginSignIn,
  readReturnedCode,
} from '../../src/console/client/sign-in.ts'

// Goal: after logging in on the page of a controller, a person returns to the requested page, and
// stays logged in while the tab is open; a link from a third party logs in nobody.

const origin = 'https://one.example:1280'

class TabStorage implements Storage {
  readonly #items = new Map<string, string>()
  get length(): number {
    return this.#items.size
  }
  clear(): void {
    this.#items.clear()
  }
  getItem(key: string): string | null {
    return this.#items.get(key) ?? null
  }
  key(): null {
    return null
  }
  removeItem(key: string): void {
    this.#items.delete(key)
  }
  setItem(key: string, value: string): void {
    this.#items.set(key, value)
  }
}

let storage: TabStorage
beforeEach(() => {
  storage = new TabStorage()
})

async function begun(backTo = '/console/services?x=1') {
  const address = new URL(await beginSignIn(storage, origin, backTo), origin)
  return { path: address.pathname, query: address.searchParams }
}

const back = (state: string, pathname = '/console/') =>
  readReturnedCode(storage, { pathname, search: `?iss=x&state=${state}&code=c1` })

describe('A sign-in to the console', () => {
  test('sends only the digest of the tab’s secret, and returns to the requested page', async () => {
    const { path, query } = await begun()
    expect(path).toBe('/oidc/authorize')
    expect(Object.fromEntries(query)).toMatchObject({
      response_type: 'code',
      scope: 'openid',
      redirect_uri: `${origin}/console/`,
      code_challenge_method: 'S256',
    })
    const found = back(query.get('state') ?? '')
    expect(found).toMatchObject({ code: 'c1', backTo: '/console/services?x=1', issuer: 'x' })
    const digest = createHash('sha256')
      .update(found?.verifier ?? '')
      .digest('base64url')
    expect(query.get('code_challenge')).toBe(digest)
  })

  test('accepts only one callback, with the right state parameter, in the tab that began the sign-in', async () => {
    const { query } = await begun()
    const state = query.get('state') ?? ''
    expect(back('of another')).toBeNull()
    expect(back(state), 'a wrong state has ended it').toBeNull()
    const again = (await begun()).query.get('state') ?? ''
    expect(back(again)).not.toBeNull()
    expect(back(again)).toBeNull()
    storage.clear()
    expect(back(again)).toBeNull()
  })

  test('accepts no callback on another page, and returns to no other site', async () => {
    const { query } = await begun('//elsewhere.example/')
    const state = query.get('state') ?? ''
    expect(back(state, '/console/services')).toBeNull()
    expect(back(state)?.backTo).toBe('/console/')
  })
})

describe('The console’s log-in at an identity provider', () => {
  const provider = { id: 's1', name: 'staff', clientId: 'c1', scopes: ['email', 'offline_access'] }

  test('sends a PKCE challenge, requests no refresh token, and remembers the signer until the callback', async () => {
    const endpoint = 'https://idp.test/auth?tenant=1'
    const url = await beginProviderSignIn(storage, origin, '/console/a', provider, endpoint)
    const { searchParams, origin: at, pathname } = new URL(url)
    const { state = '', code_challenge: challenge, ...rest } = Object.fromEntries(searchParams)
    expect([at, pathname, rest]).toEqual([
      'https://idp.test',
      '/auth',
      {
        tenant: '1',
        client_id: 'c1',
        scope: 'openid email',
        response_type: 'code',
        redirect_uri: `${origin}/console/`,
        code_challenge_method: 'S256',
      },
    ])
    const found = readReturnedCode(storage, {
      pathname: '/console/',
      search: `?code=c&state=${state}`,
    })
    expect(found).toMatchObject({ code: 'c', backTo: '/console/a', signerId: 's1', issuer: null })
    const digest = createHash('sha256')
      .update(found?.verifier ?? '')
      .digest('base64url')
    expect(challenge).toBe(digest)
  })

  test('opens only addresses with https', async () => {
    for (const endpoint of ['javascript:alert(1)', 'http://idp.test/auth', 'auth']) {
      const begun = beginProviderSignIn(storage, origin, '/console/', provider, endpoint)
      await expect(begun).rejects.toThrow(TypeError)
    }
  })
})

describe('An access token of the console', () => {
  const lifetimeSeconds = 1800
  let asked: { readonly form: URLSearchParams; readonly authorization: string | null }[]
  let status: number
  let count: number
  let isWatched: boolean

  beforeEach(() => {
    vi.useFakeTimers()
    asked = []
    status = 200
    count = 0
    isWatched = true
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  const claims = (name: string): string =>
    Buffer.from(JSON.stringify({ sub: 'id-of-ann', name })).toString('base64url')

  function tab(): TabSession {
    const session = new TabSession(storage, () => isWatched)
    const fetcher: typeof fetch = (_input, init) => {
      asked.push({
        form: new URLSearchParams(init?.body as URLSearchParams),
        authorization: new Headers(init?.headers).get('authorization'),
      })
      count += 1
      const tokens = {
        access_token: `eyJ.${claims('')}.${count}`,
        id_token: `eyJ.${claims('Ann ü')}.s`,
        expires_in: lifetimeSeconds,
      }
      const refusal = { error: 'invalid_grant', error_description: 'it has ended' }
      const body = JSON.stringify(status === 200 ? tokens : refusal)
      const headers = { 'content-type': 'application/json' }
      return Promise.resolve(new Response(body, { status, headers }))
    }
    session.attach(new ConsoleApiClient(new MemberOrigins(origin), session, fetcher))
    return session
  }

  const code = { code: 'c1', verifier: 'v1', backTo: '/console/', signerId: null, issuer: null }
  const pass = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1000)

  test('is issued for the authorization code, is sent with requests, and survives a reload of the page', async () => {
    const session = tab()
    await session.signIn(code, origin)
    expect(Object.fromEntries(asked[0]?.form ?? [])).toMatchObject({
      grant_type: 'authorization_code',
      code: 'c1',
      code_verifier: 'v1',
      redirect_uri: `${origin}/console/`,
    })
    expect(session.current.value).toMatchObject({
      identityId: 'id-of-ann',
      name: 'Ann ü',
      isPartial: false,
    })
    const token = session.token() ?? ''
    expect(sessionHeader(token)).toEqual({ authorization: `Bearer ${token}` })
    const reloaded = tab()
    expect(reloaded.token()).toBe(token)
  })

  test('is renewed repeatedly, each time before it expires', async () => {
    const session = tab()
    await session.signIn(code, origin)
    const first = session.token()
    await pass(lifetimeSeconds / 2)
    expect(session.token()).not.toBe(first)
    expect(Object.fromEntries(asked[1]?.form ?? [])).toMatchObject({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: first,
    })
    await pass(lifetimeSeconds * 3)
    expect(asked.length).toBeGreaterThan(6)
    expect(session.current.value?.name).toBe('Ann ü')
  })

  test('is requested again after failed attempts until it expires, and not afterwards', async () => {
    const session = tab()
    await session.signIn(code, origin)
    const first = session.token()
    status = 400
    await pass(lifetimeSeconds + 60)
    expect(session.token()).toBe(first)
    const tries = asked.length
    expect(tries).toBeGreaterThan(3)
    expect(tries).toBeLessThan(20)
    await pass(lifetimeSeconds)
    expect(asked).toHaveLength(tries)
  })

  test('expires in a hidden tab, but is renewed if the user returns to the tab before the expiry', async () => {
    const session = tab()
    await session.signIn(code, origin)
    const first = session.token()
    isWatched = false
    await pass(lifetimeSeconds - 120)
    expect(session.token()).toBe(first)
    isWatched = true
    await pass(60)
    expect(session.token()).not.toBe(first)
    isWatched = false
    await pass(lifetimeSeconds * 2)
    expect(asked).toHaveLength(2)
  })

  test('is not issued for an invalid code', async () => {
    const session = tab()
    status = 400
    await expect(session.signIn(code, origin)).rejects.toThrow('it has ended')
    expect(session.current.value).toBeNull()
  })
})

test('the log-in page offers the first ten signers through which users can log in, even if many other signers precede them in the list', async () => {
  const signers = Array.from({ length: 30 }, (_, at) => ({
    id: `id ${at}`,
    name: `signer ${at}`,
    externalAuthUrl: 'https://idp.test',
    clientId: at < 15 ? null : 'console',
  }))
  const fetcher: typeof fetch = (input) => {
    const limit = Number(new URL(String(input)).searchParams.get('limit'))
    const body = JSON.stringify({ data: signers.slice(0, limit), meta: {} })
    return Promise.resolve(new Response(body, { headers: { 'content-type': 'application/json' } }))
  }
  const session = new TabSession(storage, () => true)
  session.attach(new ConsoleApiClient(new MemberOrigins(origin), session, fetcher))
  const offered = await session.logInProviders()
  expect(offered.map(({ name }) => name)).toEqual(signers.slice(15, 25).map(({ name }) => name))
})
