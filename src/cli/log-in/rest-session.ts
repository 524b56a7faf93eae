import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import type { ApiResponse, ApiClient } from '../client/api-client.ts'
import { ApiRefusal } from '../client/api-refusal.ts'
import { isSessionToken } from '../client/session-token-text.ts'
import {
  requiresTotpCode,
  type AuthQuery,
  missingFactorFailure,
  logInRefusedFailure,
} from './credential.ts'
import {
  createLogInClient,
  type LogInResult,
  type SessionOpeningOptions,
} from './session-opening.ts'

interface SessionDetail {
  readonly token: string
  readonly identity: { readonly name: string }
  readonly authQueries: readonly AuthQuery[]
}

/** Opens a session of the REST API, for clusters that do not offer OpenID Connect. */
export async function openRestSession(opening: SessionOpeningOptions): Promise<LogInResult> {
  const { data, header } = await authenticate(createLogInClient(opening, null), opening)
  const session = readSessionResponse(data)
  const received = header('net-session') ?? header('zt-session')
  const token = isSessionToken(received) ? received : session.token
  await completeFactors(createLogInClient(opening, token), session, opening)
  return { token, renewal: null, identity: session.identity.name }
}

/**
 * @throws {CommandFailure} when a successful response contains no session, because then it did not
 * come from a controller.
 */
export function readSessionResponse(data: unknown): SessionDetail {
  const { token, identity, authQueries } = (data ?? {}) as Readonly<Record<string, unknown>>
  const name = ((identity ?? {}) as Readonly<Record<string, unknown>>)['name']
  const queries = authQueries ?? []
  const isWhole = isSessionToken(token) && typeof name === 'string' && Array.isArray(queries)
  if (isWhole && queries.every((one) => typeof one === 'object' && one !== null)) {
    return { token, identity: { name }, authQueries: queries as SessionDetail['authQueries'] }
  }
  throw new CommandFailure(
    EXIT_FAILED,
    'the answer to the log-in is no session; is there a controller at this address?',
  )
}

async function authenticate(
  client: ApiClient,
  { method, credential }: SessionOpeningOptions,
): Promise<ApiResponse> {
  const isPassword = method.method === 'password'
  const by = isPassword ? 'password' : method.method === 'cert' ? 'cert' : 'ext-jwt'
  try {
    return await client.ask({
      method: 'POST',
      path: `/authenticate?method=${by}`,
      body: isPassword ? { username: method.username, password: credential.password } : {},
      headers: credential.jwt === undefined ? {} : { authorization: `Bearer ${credential.jwt}` },
      isOnceOnly: true,
    })
  } catch (error) {
    const isRefused =
      error instanceof ApiRefusal &&
      ['INVALID_AUTH', 'UNAUTHORIZED', 'NO_SESSION'].includes(error.code)
    throw isRefused ? logInRefusedFailure(method, error) : error
  }
}

/**
 * Provides the missing second factor; without it, the session may not use any administrator
 * operation.
 */
async function completeFactors(
  client: ApiClient,
  { authQueries }: SessionDetail,
  { code }: SessionOpeningOptions,
): Promise<void> {
  if (authQueries.length === 0) return
  // Only a TOTP code can be provided here. A session that requires an external JWT would need the
  // identity provider's token in every request.
  if (!authQueries.every(requiresTotpCode))
    throw missingFactorFailure(authQueries, 'update flotilla')
  const body = { code: await code() }
  await client.ask({ method: 'POST', path: '/authenticate/mfa', body, isOnceOnly: true })
}
