import { createHash, randomBytes } from 'node:crypto'
import { request } from 'node:https'
import type { IncomingHttpHeaders } from 'node:http'

interface Page {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

const STEPS_MAX = 20

/**
 * The part of a browser that a log-in at a provider needs: it keeps cookies, follows redirects and
 * submits forms.
 */
export class Browser {
  readonly #ca: string
  readonly #cookies = new Map<string, string>()

  constructor(ca: string) {
    this.#ca = ca
  }

  ask(
    url: URL,
    form: Readonly<Record<string, string>> | null = null,
    headers: Readonly<Record<string, string>> = {},
    onSent: () => void = () => undefined,
  ): Promise<Page> {
    const body = form === null ? '' : new URLSearchParams(form).toString()
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    return new Promise((resolve, reject) => {
      const asked = request(url, {
        method: form === null ? 'GET' : 'POST',
        ca: this.#ca,
        agent: false,
        headers: {
          accept: 'text/html, application/json',
          ...(cookie === '' ? {} : { cookie }),
          ...(form === null ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
          ...headers,
        },
      })
      asked.on('response', (answer) => {
        for (const line of answer.headers['set-cookie'] ?? []) this.#keep(line)
        let text = ''
        answer.setEncoding('utf8')
        answer.on('data', (piece: string) => (text += piece))
        answer.on('end', () => {
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text })
        })
      })
      asked.on('error', reject)
      asked.on('finish', onSent)
      asked.end(body)
    })
  }

  #keep(line: string): void {
    const [pair = ''] = line.split(';', 1)
    const at = pair.indexOf('=')
    this.#cookies.set(pair.slice(0, at), pair.slice(at + 1))
  }

  /**
   * Follows the pages and redirects of the provider until the client's redirect URI, logs in, and
   * consents when a page requests it.
   */
  async #until(start: URL, redirectUri: string, login: string): Promise<URL> {
    let url = start
    let page = await this.ask(url)
    for (let step = 0; step < STEPS_MAX; step += 1) {
      const { location } = page.headers
      if (location !== undefined) {
        url = new URL(location, url)
        if (url.href.startsWith(redirectUri)) return url
        page = await this.ask(url)
        continue
      }
      const action = /<form[^>]* action="([^"]+)"/.exec(page.text)?.[1]
      const prompt = /name="prompt" value="([^"]+)"/.exec(page.text)?.[1]
      if (action === undefined || prompt === undefined) break
      url = new URL(action, url)
      page = await this.ask(url, { prompt, login, password: 'any' })
    }
    throw new Error(`the provider led nowhere: ${page.status} ${page.text.slice(0, 500)}`)
  }

  /** Logs in with the authorization code flow and PKCE (RFC 7636). @returns the ID token. */
  async logIn(
    issuer: string,
    clientId: string,
    redirectUri: string,
    login: string,
  ): Promise<string> {
    const found = await this.ask(new URL('/.well-known/openid-configuration', issuer))
    const endpoints = JSON.parse(found.text) as Readonly<Record<string, string>>
    const verifier = randomBytes(32).toString('base64url')
    const start = new URL(endpoints['authorization_endpoint'] ?? '')
    start.search = new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      scope: 'openid',
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    }).toString()
    const code = (await this.#until(start, redirectUri, login)).searchParams.get('code') ?? ''
    const answer = await this.ask(new URL(endpoints['token_endpoint'] ?? ''), {
      grant_type: 'authorization_code',
      code,
      client_id: clientId,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    })
    const { id_token: token } = JSON.parse(answer.text) as { readonly id_token?: string }
    if (token === undefined) throw new Error(`no token came: ${answer.text}`)
    return token
  }
}
