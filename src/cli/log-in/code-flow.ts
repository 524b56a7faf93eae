import { CommandFailure, EXIT_DENIED, EXIT_FAILED } from '../../controller/command-failure.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import type { LogInMethod } from '../client/context-file.ts'
import type { HttpsResponse } from '../client/https-request.ts'
import {
  type StartedLogIn,
  type GrantedTokens,
  type OidcProviderClient,
  OidcProviderRefusal,
} from '../client/oidc-provider-client.ts'
import {
  requiresTotpCode,
  type AuthQuery,
  type Credential,
  missingFactorFailure,
  logInRefusedFailure,
} from './credential.ts'

/**
 * Redirect URI on which no server listens: this program reads the code from the Location header of
 * the redirect.
 */
const REDIRECT_URI = 'http://127.0.0.1/auth/callback'
/**
 * Advice for a factor that this program does not support: the log-in page supports every factor
 * that a browser can provide.
 */
const ON_PAGE = 'log in with --browser or --device, or update flotilla'

export interface CodeFlowCredentials {
  readonly method: LogInMethod
  readonly credential: Credential
  /** Reads a TOTP code or a recovery code, from a file or from a prompt. */
  readonly code: () => Promise<string>
}

/**
 * Logs in with the authorization code flow, but without a browser: sends the inputs of the log-in
 * page as JSON to one controller.
 * @throws {HttpsFault} when the connection is lost; {@link CommandFailure}.
 */
export async function logInByCodeFlow(
  provider: OidcProviderClient,
  { method, credential, code }: CodeFlowCredentials,
): Promise<GrantedTokens> {
  const begun = await provider.begin(REDIRECT_URI)
  const page = pageOf(method)
  const authorized = await provider.step(`${begun.url}&method=${page}`)
  const id = new URL(locationOf(provider, authorized)).searchParams.get('authRequestID') ?? ''
  const body =
    method.method === 'password'
      ? { id, username: method.username, password: credential.password }
      : { id }
  const bearer = credential.jwt === undefined ? {} : { authorization: `Bearer ${credential.jwt}` }
  let step = await provider.step(`${provider.issuer}/login/${page}`, body, bearer)
  if (step.status === 401) throw logInRefusedFailure(method, refusalOf(provider, step))
  if (step.status === 200) {
    requireCodeAlone(provider, step)
    const given = { id, code: await code() }
    step = await provider.step(`${provider.issuer}/login/totp`, given, bearer)
    if (step.status === 400) {
      throw new CommandFailure(EXIT_DENIED, 'log-in refused: the code is wrong, or was used before')
    }
    const lacked = step.status === 200 ? queriesIn(step) : []
    if (lacked.length > 0) throw missingFactorFailure(lacked, ON_PAGE)
  }
  const callback = await provider.step(locationOf(provider, step))
  return await provider.redeem(begun, answerIn(provider, begun, callback))
}

function pageOf({ method }: LogInMethod): 'password' | 'cert' | 'ext-jwt' {
  return method === 'cert' || method === 'ext-jwt' ? method : 'password'
}

/** Requires that only a TOTP code is missing, and that the identity has enrolled TOTP. */
function requireCodeAlone(provider: OidcProviderClient, step: HttpsResponse): void {
  const queries = queriesIn(step)
  if (queries.length === 0) throw refusalOf(provider, step)
  if (!queries.every(requiresTotpCode)) throw missingFactorFailure(queries, ON_PAGE)
  if (queries.some((query) => query?.['isTotpEnrolled'] === true)) return
  throw new CommandFailure(
    EXIT_DENIED,
    'this identity must enroll an authenticator app first; log in with --browser or --device, whose page sets one up',
  )
}

function queriesIn({ body }: HttpsResponse): readonly (AuthQuery | null)[] {
  const { authQueries } = (body ?? {}) as { readonly authQueries?: unknown }
  return Array.isArray(authQueries) ? (authQueries as readonly (AuthQuery | null)[]) : []
}

/**
 * The target of a redirect. The target must be on the same controller, so that credentials are sent
 * nowhere else.
 * @throws {CommandFailure}
 */
function locationOf(provider: OidcProviderClient, answer: HttpsResponse): string {
  const { location } = answer.headers
  if (answer.status !== 302 || location === undefined) throw refusalOf(provider, answer)
  const url = URL.parse(location, `${provider.issuer}/`)
  // @guard log-in-at-the-terminal--elsewhere
  if (url?.origin === provider.controller) return url.href
  throw new CommandFailure(
    EXIT_FAILED,
    `${provider.controller}: the log-in leads to another host; nothing was sent there`,
  )
}

/** The parameters that a browser would send to the redirect URI. */
function answerIn(
  provider: OidcProviderClient,
  { redirectUri }: StartedLogIn,
  answer: HttpsResponse,
): URLSearchParams {
  const { location } = answer.headers
  if (answer.status !== 302 || location?.startsWith(`${redirectUri}?`) !== true) {
    throw refusalOf(provider, answer)
  }
  return new URL(location).searchParams
}

function refusalOf(
  { controller }: OidcProviderClient,
  { status, body }: HttpsResponse,
): OidcProviderRefusal {
  const { code, message } = (body ?? {}) as { readonly code?: unknown; readonly message?: unknown }
  const reason = typeof message === 'string' ? message : `unexpected response status ${status}`
  const isPassing = status === 429 || status >= 500
  const text = `${controller}: ${printableLine(reason, 300)}`
  return new OidcProviderRefusal(String(code ?? ''), text, isPassing)
}
