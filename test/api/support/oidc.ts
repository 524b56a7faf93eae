import { createHash, randomBytes } from 'node:crypto'

/** A response of the OpenID provider, which has no envelope. */
export interface OidcReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | number | string[] | undefined>>
  readonly text: string
  readonly json: Readonly<Record<string, unknown>>
}

export interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
  readonly id_token: string
}

export const redirectUri = 'http://localhost:8080/auth/callback'
const HOST = 'localhost:1280'

/**
 * Where a client sends its requests: to the controller of a test directly, or to a listener with
 * TLS.
 */
export interface OidcDoor {
  readonly app: {
    inject(request: {
      readonly method: 'GET' | 'POST' | 'DELETE'
      readonly url: string
      readonly headers: Record<string, string>
      readonly payload?: string
      readonly remoteAddress?: string
    }): PromiseLike<{
      readonly statusCode: number
      readonly headers: OidcReply['headers']
      readonly payload: string
    }>
  }
}

/** A client that logs in with the authorization code flow, as SDKs do. */
export class OidcClient {
  readonly verifier = randomBytes(32).toString('base64url')
  readonly #door: OidcDoor
  host = HOST
  address = '127.0.0.1'

  constructor(door: OidcDoor) {
    this.#door = door
  }

  async send(
    method: 'GET' | 'POST' | 'DELETE',
    url: string,
    form?: Readonly<Record<string, string>> | string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<OidcReply> {
    const payload = typeof form === 'object' ? new URLSearchParams(form).toString() : form
    const answer = await this.#door.app.inject({
      method,
      url,
      headers: {
        host: this.host,
        ...(payload === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
        ...headers,
      },
      remoteAddress: this.address,
      ...(payload === undefined ? {} : { payload }),
    })
    const isJson = String(answer.headers['content-type']).startsWith('application/json')
    const json = (isJson ? JSON.parse(answer.payload) : {}) as Record<string, unknown>
    return { status: answer.statusCode, headers: answer.headers, text: answer.payload, json }
  }

  authorize(changes: Readonly<Record<string, string>> = {}): Promise<OidcReply> {
    const challenge = createHash('sha256').update(this.verifier).digest('base64url')
    const parameters = {
      client_id: 'native',
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: 'openid offline_access',
      state: 'a state',
      nonce: 'a nonce',
      code_challenge: challenge,
      code_challenge_method: 'S256',
      ...changes,
    }
    return this.send('GET', `/oidc/authorize?${new URLSearchParams(parameters).toString()}`)
  }

  /** The response to the last step of a log-in by password. */
  async passed(username: string, password: string): Promise<OidcReply> {
    const id = await this.begin()
    return await this.send('POST', '/oidc/login/password', { id, username, password })
  }

  /** Starts a log-in flow. @returns its ID. */
  async begin(changes: Readonly<Record<string, string>> = {}): Promise<string> {
    const { headers } = await this.authorize(changes)
    return parameterOf(headers['location'], 'authRequestID')
  }

  /**
   * Follows the callback URL in the response to the last step of a log-in. @returns the code that
   * the client receives.
   */
  async codeOf(step: OidcReply): Promise<string> {
    const { pathname, search } = new URL(String(step.headers['location']))
    const left = await this.send('GET', pathname + search)
    return parameterOf(left.headers['location'], 'code')
  }

  redeem(code: string, changes: Readonly<Record<string, string>> = {}): Promise<OidcReply> {
    return this.send('POST', '/oidc/oauth/token', {
      grant_type: 'authorization_code',
      client_id: 'native',
      redirect_uri: redirectUri,
      code_verifier: this.verifier,
      code,
      ...changes,
    })
  }

  refresh(token: string, changes: Readonly<Record<string, string>> = {}): Promise<OidcReply> {
    const grant = { grant_type: 'refresh_token', client_id: 'native', refresh_token: token }
    return this.send('POST', '/oidc/oauth/token', { ...grant, ...changes })
  }

  /** Exchanges a token for one of another type; types are short names such as `refresh_token`. */
  exchange(text: string, type: string, wanted: string): Promise<OidcReply> {
    const prefix = 'urn:ietf:params:oauth:token-type:'
    return this.send('POST', '/oidc/oauth/token', {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      client_id: 'native',
      subject_token: text,
      subject_token_type: prefix + type,
      requested_token_type: prefix + wanted,
    })
  }

  async logIn(username: string, password: string): Promise<Tokens> {
    const { json } = await this.redeem(await this.codeOf(await this.passed(username, password)))
    return json as unknown as Tokens
  }

  /** Logs in with the client certificate of the connection. */
  async logInByCertificate(): Promise<Tokens> {
    const id = await this.begin()
    const step = await this.send('POST', '/oidc/login/cert', { id })
    const { json } = await this.redeem(await this.codeOf(step))
    return json as unknown as Tokens
  }

  /** The status of a request with a bearer token. */
  async statusAt(url: string, token: string): Promise<number> {
    const headers = { authorization: `Bearer ${token}` }
    return (await this.send('GET', url, undefined, headers)).status
  }
}

export function parameterOf(location: unknown, name: string): string {
  const url = new URL(String(location), `https://${HOST}`)
  return url.searchParams.get(name) ?? ''
}
