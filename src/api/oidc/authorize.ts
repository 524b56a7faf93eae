import {
  validateAuthorizationRequest,
  validateRedirectUri,
} from '../../auth/oidc/public-clients.ts'
import type { DeviceFlow } from '../../auth/oidc/device-flow.ts'
import type { LogInFlow } from '../../auth/oidc/log-in-flow.ts'
import type { RedirectTargets } from '../../auth/oidc/redirect-targets.ts'
import { OAuthError } from '../../auth/oidc/oauth-error.ts'
import { type RequestContext, toWriteRequest } from '../http/request-context.ts'
import type { Reply } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { basePaths } from '../http/paths.ts'
import { unknownHostProblem } from './discovery.ts'
import type { Issuers } from './issuers.ts'
import {
  oauthErrorResponse,
  catchOAuthError,
  readRequestParameters,
  redirectResponse,
  addQueryParameters,
} from './oauth-responses.ts'
import {
  OAUTH_FORM_BYTES_MAX,
  oauthFormBody,
  hostHeaderParameter,
  oidcOperationDefaults,
} from './oidc-schemas.ts'

interface AuthorizeOperationsDeps {
  readonly oidcFlow: LogInFlow
  readonly deviceFlow: DeviceFlow
  readonly issuers: Issuers
  readonly redirectPlaces: (call: RequestContext) => RedirectTargets
  readonly isOffered: () => void
}

const CONFIG_TYPES_MAX = 100
const pages: readonly string[] = ['password', 'cert', 'ext-jwt']

const common = {
  ...oidcOperationDefaults,
  alsoAnswers: 302,
  headers: hostHeaderParameter,
  refusals: [404, 429],
  refusalShape: 'oauth',
} as const

/**
 * Operations that begin an authorization flow, and that end it with a redirect that contains the
 * code.
 */
export function authorizationOperations(deps: AuthorizeOperationsDeps): Operation[] {
  const ofAuthorize = { ...common, path: '/authorize' } as const
  const ofCallback = { ...common, path: '/authorize/callback' } as const
  return [
    {
      ...ofAuthorize,
      operationId: 'oidcAuthorize',
      summary: 'Begin a log-in by the authorization code flow',
      method: 'GET',
      handle: (call) => catchOAuthError(() => authorize(deps, call, undefined)),
    },
    operationWithBody({
      ...ofAuthorize,
      operationId: 'oidcAuthorizeByForm',
      summary: 'Begin a log-in by the authorization code flow',
      method: 'POST',
      body: oauthFormBody,
      bodyBytesMax: OAUTH_FORM_BYTES_MAX,
      handle: (call, body) => catchOAuthError(() => authorize(deps, call, body)),
    }),
    {
      ...ofCallback,
      operationId: 'oidcCallback',
      summary: 'Send the code of a log-in to the client',
      method: 'GET',
      handle: (call) => catchOAuthError(() => leave(deps, call, undefined)),
    },
    operationWithBody({
      ...ofCallback,
      operationId: 'oidcCallbackByForm',
      summary: 'Send the code of a log-in to the client',
      method: 'POST',
      body: oauthFormBody,
      bodyBytesMax: OAUTH_FORM_BYTES_MAX,
      handle: (call, body) => catchOAuthError(() => leave(deps, call, body)),
    }),
  ]
}

async function authorize(
  deps: AuthorizeOperationsDeps,
  call: RequestContext,
  body: unknown,
): Promise<Reply> {
  deps.isOffered()
  const issuer = deps.issuers.of(call)
  if (issuer === null) throw unknownHostProblem()
  const of = readRequestParameters(call, body)
  const redirectUri = validateRedirectUri(of, deps.redirectPlaces(call))
  try {
    const types = call.all('configTypes').flatMap((text) => text.split(','))
    const request = validateAuthorizationRequest(of, redirectUri, types.slice(0, CONFIG_TYPES_MAX))
    const id = await deps.oidcFlow.begin(request, issuer)
    const asked = of('method') ?? (call.credentials.peerChain() === null ? 'password' : 'cert')
    const page = pages.includes(asked) ? asked : 'password'
    return redirectResponse(
      addQueryParameters(`${basePaths.oidc}/login/${page}`, { authRequestID: id }),
    )
  } catch (error) {
    // OpenZiti clients read OAuth errors from the response. Only `login_required` is sent to the
    // redirect URI, because a hidden page of the client waits there for it.
    if (!(error instanceof OAuthError)) throw error
    if (error.code !== 'login_required') return oauthErrorResponse(error)
    const state = of('state')
    const parameters = { error: error.code, ...(state === undefined ? {} : { state }), iss: issuer }
    return redirectResponse(addQueryParameters(redirectUri, parameters))
  }
}

async function leave(
  deps: AuthorizeOperationsDeps,
  call: RequestContext,
  body: unknown,
): Promise<Reply> {
  const id = readRequestParameters(call, body)('id') ?? ''
  const request = { write: toWriteRequest(call), turn: call }
  const done = await deps.deviceFlow.approve(id, call.credentials, request)
  if (done !== null) return redirectResponse(done)
  const found = await deps.oidcFlow.code(id)
  if (found === null) {
    throw new OAuthError('invalid_request', 'the log-in is unknown, or took too long; begin again')
  }
  const { redirectUri, code, state, issuer } = found
  // The code must be the last parameter, because one OpenZiti client takes everything after `code=`
  // for the code. `iss` is the issuer parameter of RFC 9207.
  // @guard oidc/authorization--last
  const parameters = { iss: issuer, ...(state === '' ? {} : { state }), code }
  return redirectResponse(addQueryParameters(redirectUri, parameters))
}
