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
}

/** An authorization code, with everything that is needed to redeem it. */
export interface ReturnedCode {
  readonly code: string
  readonly verifier: string
  readonly backTo: string
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
  const [state, verifier] = [randomText(), randomText()]
  const begun: Begun = { state, verifier, backTo }
  storage.setItem(STORED, JSON.stringify(begun))
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  const query = new URLSearchParams({
    client_id: CLIENT_ID,
    response_type: 'code',
    // Without the scope for a refresh token, because that token would outlive the tab.
    scope: 'openid',
    redirect_uri: origin + CALLBACK_PATH,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: 'S256',
    state,
  })
  return `${AUTHORIZE_PATH}?${query.toString()}`
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
  return { code, verifier: begun.verifier, backTo: begun.backTo }
}

export function codeRedemptionForm({ code, verifier }: ReturnedCode, origin: string): Form {
  return {
    grant_type: 'authorization_code',
    client_id: CLIENT_ID,
    redirect_uri: origin + CALLBACK_PATH,
    code,
    code_verifier: verifier,
  }
}

/** Form that exchanges a valid access token for a newer one (RFC 8693). */
export function tokenExchangeForm(access: string): Form {
  return {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    client_id: CLIENT_ID,
    subject_token: access,
    subject_token_type: ACCESS_TOKEN,
    requested_token_type: ACCESS_TOKEN,
  }
}

export type Form = Readonly<Record<string, string>>

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
    const { state, verifier, backTo } = JSON.parse(
      storage.getItem(STORED) ?? '{}',
    ) as Partial<Begun>
    if (typeof state !== 'string' || typeof verifier !== 'string') return null
    const isOwn = typeof backTo === 'string' && backTo.startsWith(CALLBACK_PATH)
    return { state, verifier, backTo: isOwn ? backTo : CALLBACK_PATH }
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
