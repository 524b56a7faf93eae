/** Key of the data that the tab stores while the sign-in page is open. */
const STORED = 'flotilla.sign-in'
export const TOKEN_PATH = '/oidc/oauth/token'
const AUTHORIZE_PATH = '/oidc/authorize'
/** Id of the OpenID Connect client that exists in every network (docs/administer/log-in.md). */
const CLIENT_ID = 'openziti'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

/** Redirect address, to which the controller sends the browser back. */
export const CALLBACK_PATH = '/console/'

interface Begun {
  readonly state: string
  readonly verifier: string
  /** Path and query of the page that the user requested. */
  readonly backTo: string
  /** Id of the signer whose provider logs in; null: the controller's own sign-in page. */
  readonly signerId: string | null
}

/**
 * An external JWT signer at whose identity provider users can log in, as a controller publishes it.
 */
export interface LogInProvider {
  readonly id: string
  readonly name: string
  readonly clientId: string
  readonly scopes: readonly string[]
}

/** An authorization code, with everything that is needed to redeem it. */
export interface ReturnedCode {
  readonly code: string
  readonly verifier: string
  readonly backTo: string
  readonly signerId: string | null
  /** Issuer of the code, as the redirect names it (RFC 9207); null if it names none. */
  readonly issuer: string | null
}

/** The fields of a token response that the console uses. */
export interface SignInTokens {
  readonly access: string
  readonly identityId: string
  readonly name: string
  readonly lifetimeMs: number
}

/**
 * Begins the code flow (RFC 6749, 4.1; RFC 7636) at the controller's sign-in page. That page asks
 * for every required factor, and sets a factor up if the policy requires it.
 * @returns the address to open.
 */
export async function beginSignIn(
  storage: Storage,
  origin: string,
  backTo: string,
): Promise<string> {
  // Does not request the scope for a refresh token, because such a token would outlive the tab.
  const client = { client_id: CLIENT_ID, scope: 'openid' }
  const query = await codeRequest(storage, origin, { backTo, signerId: null }, client)
  return `${AUTHORIZE_PATH}?${query.toString()}`
}

/**
 * Begins the code flow at the provider of a signer.
 * @param endpoint the provider's authorization endpoint, as a controller found it.
 * @returns the address to open.
 * @throws {TypeError} if the endpoint is not an https address.
 */
export async function beginProviderSignIn(
  storage: Storage,
  origin: string,
  backTo: string,
  provider: LogInProvider,
  endpoint: string,
): Promise<string> {
  const url = new URL(endpoint)
  if (url.protocol !== 'https:') throw new TypeError('the log-in of a provider begins with https')
  const scopes = new Set(['openid', ...provider.scopes.filter((one) => one !== 'offline_access')])
  const client = { client_id: provider.clientId, scope: [...scopes].join(' ') }
  const begun = { backTo, signerId: provider.id }
  for (const [name, value] of await codeRequest(storage, origin, begun, client)) {
    url.searchParams.set(name, value)
  }
  return url.href
}

/** The parameters of a code flow, whose secrets the tab stores until the browser returns. */
async function codeRequest(
  storage: Storage,
  origin: string,
  { backTo, signerId }: Pick<Begun, 'backTo' | 'signerId'>,
  client: FormParameters,
): Promise<URLSearchParams> {
  const [state, verifier] = [randomText(), randomText()]
  const begun: Begun = { state, verifier, backTo, signerId }
  storage.setItem(STORED, JSON.stringify(begun))
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  return new URLSearchParams({
    ...client,
    response_type: 'code',
    redirect_uri: origin + CALLBACK_PATH,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: 'S256',
    state,
  })
}

/**
 * The code in the redirect address. It is valid once, and only in the tab that requested it, so
 * that an attacker's link cannot log anybody in (RFC 6749, 10.12).
 * @returns null when there is no code, or it is not for this tab.
 */
export function readReturnedCode(
  storage: Storage,
  { pathname, search }: Pick<URL, 'pathname' | 'search'>,
): ReturnedCode | null {
  const query = new URLSearchParams(search)
  const [code, state] = [query.get('code'), query.get('state')]
  if (pathname !== CALLBACK_PATH || code === null || state === null) return null
  const begun = begunIn(storage)
  storage.removeItem(STORED)
  if (begun === null || begun.state !== state) return null
  const { verifier, backTo, signerId } = begun
  return { code, verifier, backTo, signerId, issuer: query.get('iss') }
}

export function codeRedemptionForm(
  { code, verifier }: ReturnedCode,
  origin: string,
): FormParameters {
  return {
    grant_type: 'authorization_code',
    client_id: CLIENT_ID,
    redirect_uri: origin + CALLBACK_PATH,
    code,
    code_verifier: verifier,
  }
}

/** Form that exchanges a valid access token for a newer one (RFC 8693). */
export function tokenExchangeForm(access: string): FormParameters {
  return {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    client_id: CLIENT_ID,
    subject_token: access,
    subject_token_type: ACCESS_TOKEN,
    requested_token_type: ACCESS_TOKEN,
  }
}

export type FormParameters = Readonly<Record<string, string>>

/** @throws {TypeError} if the response contains no tokens. */
export function readSignInTokens(body: unknown): SignInTokens {
  const { access_token, id_token, expires_in } = body as Readonly<Record<string, unknown>>
  if (typeof access_token !== 'string' || typeof expires_in !== 'number') {
    throw new TypeError('the answer holds no token')
  }
  // The claims need not be verified: the controller itself sent the token over TLS, and the
  // controller checks every request against its own records.
  const { sub, name } = claimsOf(typeof id_token === 'string' ? id_token : access_token)
  return {
    access: access_token,
    identityId: String(sub ?? ''),
    name: String(name ?? ''),
    lifetimeMs: expires_in * 1000,
  }
}

function begunIn(storage: Storage): Begun | null {
  try {
    const { state, verifier, backTo, signerId } = JSON.parse(
      storage.getItem(STORED) ?? '{}',
    ) as Partial<Begun>
    if (typeof state !== 'string' || typeof verifier !== 'string') return null
    const isOwn = typeof backTo === 'string' && backTo.startsWith(CALLBACK_PATH)
    const signer = typeof signerId === 'string' ? signerId : null
    return { state, verifier, backTo: isOwn ? backTo : CALLBACK_PATH, signerId: signer }
  } catch {
    return null
  }
}

function claimsOf(token: string): Readonly<Record<string, unknown>> {
  try {
    const payload = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/')
    const bytes = Uint8Array.from(atob(payload), (letter) => letter.charCodeAt(0))
    return JSON.parse(new TextDecoder().decode(bytes)) as Readonly<Record<string, unknown>>
  } catch {
    return {}
  }
}

function randomText(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)))
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}
