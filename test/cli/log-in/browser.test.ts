import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { OidcProviderClient } from '../../../src/cli/client/oidc-provider-client.ts'
import { logInByBrowser } from '../../../src/cli/log-in/browser.ts'
import {
  RedirectListener,
  redirectListenerLimits,
} from '../../../src/cli/log-in/redirect-listener.ts'
import { admin } from '../../api/support/controller.ts'
import { freePort } from '../../support/ports.ts'
import { Administrator } from '../client/support.ts'

// Goal: a log-in in a browser ends in the terminal that began it, regardless of other requests to
// its port.

interface Page {
  readonly status: number
  readonly text: string
}

/** Sends a request of a browser, or of another program on the host, to the loopback address. */
function get(url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Page> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, headers, agent: false }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => (text += chunk))
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
    })
    asked.on('error', reject)
    asked.end()
  })
}

describe('the local port for the browser’s redirect', () => {
  test('accepts only one response with the state parameter of the log-in, and shows the user the result', async () => {
    const listener = await RedirectListener.open()
    const waiting = listener.wait('a state')
    const page = get(`${listener.uri}?state=a+state&code=c`)
    const { parameters, show } = await waiting
    expect(parameters.get('code')).toBe('c')
    const again = await get(`${listener.uri}?state=a+state&code=c`)
    expect(again.status).toBe(400)
    show({ isLoggedIn: true, text: 'You are <alice>.' })
    expect(await page).toMatchObject({ status: 200 })
    expect((await page).text).toContain('You are &#60;alice&#62;.')
    await listener.close()
  })

  test('is part of the redirect URI, whose host is 127.0.0.1', async () => {
    const listener = await RedirectListener.open()
    const { port } = new URL(listener.uri)
    expect(listener.uri).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/auth\/callback$/)
    const socket = connect(Number(port), '127.0.0.1')
    await once(socket, 'connect')
    socket.destroy()
    await listener.close()
  })

  test.each([
    ['another state', '?state=other&code=c', {}, 'GET'],
    ['no state', '?code=c', {}, 'GET'],
    ['another path', '/more?state=s&code=c', {}, 'GET'],
    [
      'another host name that leads to this host',
      '?state=s&code=c',
      { host: 'evil.example' },
      'GET',
    ],
    ['the method POST', '?state=s&code=c', {}, 'POST'],
  ])(
    'keeps waiting for the response after a request with %s',
    async (_what, suffix, headers, method) => {
      const listener = await RedirectListener.open()
      const waiting = listener.wait('s')
      const stray = await get(listener.uri + suffix, headers, method)
      expect([stray.status, stray.text]).toEqual([400, expect.stringContaining('not the log-in')])
      const page = get(`${listener.uri}?state=s&code=right`)
      const { parameters, show } = await waiting
      expect(parameters.get('code')).toBe('right')
      show({ isLoggedIn: false, text: '' })
      expect((await page).text).toContain('The log-in failed')
      await listener.close()
    },
  )

  test('closes after too many requests that do not belong to the log-in, and after a timeout', async () => {
    const listener = await RedirectListener.open()
    const waiting = listener.wait('s')
    const refused = expect(waiting).rejects.toThrow('too many other requests')
    for (let count = 0; count < redirectListenerLimits.strayRequestsMax; count += 1)
      await get(listener.uri)
    await refused
    await listener.close()
    const late = await RedirectListener.open()
    await expect(late.wait('s', 1)).rejects.toThrow('in time')
    await late.close()
  })
})

describe('a log-in in the browser', () => {
  let person: Administrator
  let provider: OidcProviderClient
  beforeAll(async () => {
    person = await Administrator.open()
    provider = await OidcProviderClient.discover(person.origin, { caPem: person.caPem })
  })
  afterAll(() => person.close())

  /** Logs in on the page as a person does. @returns the page at the redirect URI. */
  async function onPage(url: string): Promise<Page> {
    const { listener } = person.cluster
    const follow = async (
      path: string,
      form: Record<string, string> | null = null,
    ): Promise<URL> => {
      const headers = {
        host: new URL(person.origin).host,
        accept: 'text/html',
        ...(form === null ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
      }
      const body = form === null ? {} : { body: new URLSearchParams(form).toString() }
      const reply = await listener.call({
        method: form === null ? 'GET' : 'POST',
        path,
        headers,
        ...body,
      })
      return new URL(String(reply.headers['location']), person.origin)
    }
    const { pathname, search } = new URL(url)
    const page = await follow(pathname + search)
    const id = page.searchParams.get('authRequestID') ?? ''
    const { username, password } = admin
    const callback = await follow(page.pathname, { id, username, password })
    const redirect = await follow(callback.pathname + callback.search)
    return await get(redirect.href)
  }

  test('returns tokens to the terminal after the user has logged in on the page', async () => {
    const pages: Promise<Page>[] = []
    const tokens = await logInByBrowser(provider, (url) => void pages.push(onPage(url)))
    expect(tokens).toMatchObject({ name: 'Default Admin' })
    expect(tokens.accessToken).toMatch(/^ey/)
    const [page] = await Promise.all(pages)
    expect(page).toMatchObject({ status: 200, text: expect.stringContaining('as Default Admin') })
  })

  test('shows an error page after a refusal by the provider, or after a response from another issuer', async () => {
    for (const [more, sentence] of [
      ['iss=https%3A%2F%2Fevil.example%2Foidc&code=c', /iss/],
      [`iss=${encodeURIComponent(provider.issuer)}&error=access_denied`, /access_denied/],
    ] as const) {
      const pages: Promise<Page>[] = []
      const failed = logInByBrowser(provider, (url) => {
        const { searchParams } = new URL(url)
        const state = searchParams.get('state') ?? ''
        pages.push(get(`${searchParams.get('redirect_uri') ?? ''}?state=${state}&${more}`))
      })
      await expect(failed).rejects.toThrow(sentence)
      const [page] = await Promise.all(pages)
      expect(page?.text).toContain('The log-in failed')
    }
  })

  test('begins with a URL that contains a hash of the code verifier, and not the verifier', async () => {
    const begun = await provider.begin(`http://127.0.0.1:${await freePort()}/auth/callback`)
    expect(begun.url).not.toContain(begun.verifier)
    expect(new URL(begun.url).searchParams.get('code_challenge_method')).toBe('S256')
  })
})
