import type { DeviceLogIns } from '../../auth/oidc/device-log-ins.ts'
import { encodeFlowCertificateRequest } from '../../auth/oidc/token-key-binding.ts'
import type { FlowTokens } from '../../auth/oidc/flow-steps.ts'
import type { LogInFlow } from '../../auth/oidc/log-in-flow.ts'
import { OAuthError } from '../../auth/oidc/oauth-error.ts'
import type { RedirectTargets } from '../../auth/oidc/redirect-targets.ts'
import { isRedirectAllowed } from '../../auth/oidc/public-clients.ts'
import type { FormerMemberTokens } from '../../auth/sessions/former-member-tokens.ts'
import type { MintedTokens, OidcTokens } from '../../auth/sessions/oidc-tokens.ts'
import type { OidcToken, TokenPurpose } from '../../pki/oidc-token.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import { Problem } from '../../lib/problems.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { type RequestContext, toWriteRequest } from '../http/request-context.ts'
import type { Reply } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { basePaths } from '../http/paths.ts'
import { readOauthClientId } from './oauth-client.ts'
import { DEVICE_GRANT_TYPE, unknownHostProblem } from './discovery.ts'
import type { Issuers } from './issuers.ts'
import {
  readFormParameters,
  jsonResponseWithoutEnvelope,
  catchOAuthError,
  readRequestParameters,
  redirectResponse,
  readTokenParameters,
  addQueryParameters,
} from './oauth-responses.ts'
import {
  OAUTH_FORM_BYTES_MAX,
  oauthFormBody,
  hostHeaderParameter,
  oidcOperationDefaults,
} from './oidc-schemas.ts'
import { renderHtmlPage } from './html-page.ts'

interface TokenOperationsDeps {
  readonly oidcFlow: LogInFlow
  readonly deviceLogIns: DeviceLogIns
  readonly oidcTokens: OidcTokens
  readonly formerTokens: FormerMemberTokens
  readonly issuers: Issuers
  readonly redirectPlaces: (call: RequestContext) => RedirectTargets
  readonly isOffered: () => void
}

const ACCESS = 'urn:ietf:params:oauth:token-type:access_token'
const REFRESH = 'urn:ietf:params:oauth:token-type:refresh_token'
const ID = 'urn:ietf:params:oauth:token-type:id_token'

const common = {
  ...oidcOperationDefaults,
  headers: [
    ...hostHeaderParameter,
    { name: 'authorization', description: 'Basic, with the client ID and no secret' },
  ],
  refusals: [401, 404, 429],
  refusalShape: 'oauth',
} as const

const loggedOutText = '<p>You may close this page.</p>'

/** Operations that issue and revoke tokens, show the user of an access token, and log out. */
export function tokenOperations(deps: TokenOperationsDeps): Operation[] {
  const revokes = ['/revoke', '/oauth/revoke'] as const
  return [
    operationWithBody({
      ...common,
      operationId: 'oidcToken',
      summary: 'Get tokens for a code, a refresh token or another token',
      method: 'POST',
      path: '/oauth/token',
      body: oauthFormBody,
      bodyBytesMax: OAUTH_FORM_BYTES_MAX,
      handle: (call, body) => catchOAuthError(() => tokens(deps, call, body)),
    }),
    ...revokes.map((path, at) =>
      operationWithBody({
        ...common,
        operationId: at === 0 ? 'oidcRevoke' : 'oidcRevokeBelowOAuth',
        summary: 'End the session of a token',
        method: 'POST',
        path,
        body: oauthFormBody,
        bodyBytesMax: OAUTH_FORM_BYTES_MAX,
        handle: (call, body) => catchOAuthError(() => revoke(deps, call, body)),
      }),
    ),
    ...(['GET', 'POST'] as const).map((method): Operation => ({
      ...common,
      operationId: method === 'GET' ? 'oidcUserInfo' : 'oidcUserInfoByPost',
      summary: 'Show the identity of an access token',
      method,
      path: '/userinfo',
      handle: (call) => userInfo(deps, call),
    })),
    {
      ...common,
      operationId: 'oidcEndSession',
      summary: 'Log out',
      alsoAnswers: 302,
      method: 'GET',
      path: '/end_session',
      handle: (call) => catchOAuthError(() => endSession(deps, call, undefined)),
    },
    operationWithBody({
      ...common,
      operationId: 'oidcEndSessionByForm',
      summary: 'Log out',
      alsoAnswers: 302,
      method: 'POST',
      path: '/end_session',
      body: oauthFormBody,
      bodyBytesMax: OAUTH_FORM_BYTES_MAX,
      handle: (call, body) => catchOAuthError(() => endSession(deps, call, body)),
    }),
    {
      ...common,
      operationId: 'oidcLoggedOut',
      summary: 'Show the page after a log-out',
      method: 'GET',
      path: '/logged-out',
      handle: () => renderHtmlPage({ title: 'You are logged out', content: loggedOutText }),
    },
  ]
}

async function tokens(
  deps: TokenOperationsDeps,
  call: RequestContext,
  body: unknown,
): Promise<Reply> {
  deps.isOffered()
  // @guard oidc/floods--address
  const of = readTokenParameters(call, body)
  const clientId = readOauthClientId(call, of('client_id'))
  switch (of('grant_type')) {
    case 'authorization_code': {
      const given = {
        clientId,
        redirectUri: of('redirect_uri') ?? '',
        verifier: of('code_verifier') ?? '',
      }
      const request = { write: toWriteRequest(call), turn: call }
      const { oidcFlow } = deps
      return grantedAnswer(
        await oidcFlow.redeem(of('code') ?? '', given, call.credentials, request),
      )
    }
    case 'refresh_token': {
      const token = await judgedRefresh(deps, call, of('refresh_token'))
      return grantedAnswer(await renewed(deps, call, { token, clientId, of }))
    }
    case DEVICE_GRANT_TYPE: {
      const request = { write: toWriteRequest(call), turn: call }
      const { deviceLogIns } = deps
      const issuer = deps.issuers.of(call)
      if (issuer === null) throw unknownHostProblem()
      const given = { deviceCode: of('device_code') ?? '', clientId, issuer }
      return grantedAnswer(await deviceLogIns.redeem(given, call.credentials, request))
    }
    case 'urn:ietf:params:oauth:grant-type:token-exchange': {
      const type = of('subject_token_type')
      const purpose = type === ACCESS ? 'access' : 'refresh'
      if (type !== ACCESS && type !== REFRESH) {
        throw new OAuthError(
          'invalid_request',
          'subject_token_type must be an access or refresh token',
        )
      }
      const text = of('subject_token')
      const token =
        purpose === 'refresh'
          ? await judgedRefresh(deps, call, text)
          : await judged(deps, call, text, [purpose])
      const minted = await renewed(deps, call, { token, clientId, of })
      // Routers see access tokens, so the exchange of an access token must not return a token that
      // lives longer.
      // @guard oidc/refresh--access
      const given = purpose === 'access' ? { ...minted, refresh: null } : minted
      return exchanged(given, of('requested_token_type') ?? type)
    }
    case undefined:
      throw new OAuthError('invalid_request', 'grant_type is required')
    default:
      throw new OAuthError(
        'unsupported_grant_type',
        'grant_type must be authorization_code, refresh_token, device_code or token exchange',
      )
  }
}

interface Renewal {
  readonly token: OidcToken
  readonly clientId: string
  /** Returns a parameter of the request. */
  readonly of: (name: string) => string | undefined
}

async function renewed(
  deps: TokenOperationsDeps,
  call: RequestContext,
  { token, clientId, of }: Renewal,
): Promise<FlowTokens> {
  const issuer = deps.issuers.of(call)
  if (issuer === null) throw unknownHostProblem()
  // @guard oidc/refresh--client
  if (token.clientId !== clientId) {
    throw new OAuthError('invalid_grant', 'the token is of another client')
  }
  const scopes = of('scope')?.split(' ') ?? token.scopes
  // @guard oidc/refresh--scope
  if (!scopes.every((one) => token.scopes.includes(one))) {
    throw new OAuthError('invalid_scope', 'scope names more than the token has')
  }
  const requestPem = encodeFlowCertificateRequest(of('csr_pem'))
  const write = toWriteRequest(call)
  return await deps.oidcFlow.renew(token, issuer, scopes, call.credentials, requestPem, write)
}

/**
 * Checks a refresh token. If a removed controller issued it, it can only be exchanged for new
 * tokens.
 */
async function judgedRefresh(
  deps: TokenOperationsDeps,
  call: RequestContext,
  text: string | undefined,
): Promise<OidcToken> {
  try {
    return await judged(deps, call, text, ['refresh'])
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    const token = await deps.formerTokens.judge(text ?? '', call.credentials)
    if (token === null) throw error
    return token
  }
}

async function judged(
  { oidcTokens }: TokenOperationsDeps,
  call: RequestContext,
  text: string | undefined,
  purposes: readonly TokenPurpose[],
): Promise<OidcToken> {
  const found = await oidcTokens.judge(text ?? '', purposes, call.credentials.source)
  if (typeof found !== 'string') return found
  const reason = found === 'expired' ? 'the token has expired' : 'the token is unknown or revoked'
  throw new OAuthError('invalid_grant', reason)
}

function grantedAnswer(granted: MintedTokens & Partial<FlowTokens>): Reply {
  const { access, refresh, id, expiresInSeconds, sessionCertificate = null } = granted
  return jsonResponseWithoutEnvelope({
    access_token: access,
    token_type: 'Bearer',
    expires_in: expiresInSeconds,
    ...(refresh === null ? {} : { refresh_token: refresh }),
    ...(id === null ? {} : { id_token: id }),
    ...(sessionCertificate === null ? {} : { session_cert: sessionCertificate }),
  })
}

/**
 * Token exchange response (RFC 8693, 2.2.1). With a new access token, a separate JSON field
 * contains the new refresh token, if there is one, because OpenZiti clients read that field.
 */
function exchanged(granted: FlowTokens, wanted: string): Reply {
  const { access, refresh, id, expiresInSeconds, sessionCertificate } = granted
  const refreshMember = refresh === null ? {} : { refresh_token: refresh }
  const byType: Readonly<Record<string, JsonObject | null>> = {
    [ACCESS]: { access_token: access, token_type: 'Bearer', ...refreshMember },
    [REFRESH]:
      refresh === null ? null : { access_token: access, token_type: 'Bearer', ...refreshMember },
    [ID]: id === null ? null : { access_token: id, token_type: 'N_A' },
  }
  const members = byType[wanted] ?? null
  if (members === null) {
    throw new OAuthError('invalid_request', 'requested_token_type is none that can be given')
  }
  const made = sessionCertificate === null ? {} : { session_cert: sessionCertificate }
  return jsonResponseWithoutEnvelope({
    ...members,
    ...made,
    issued_token_type: wanted,
    expires_in: expiresInSeconds,
  })
}

/**
 * Ends the session of a token. For an invalid token, the response is the same as for a valid one
 * (RFC 7009, 2.2).
 */
async function revoke(
  deps: TokenOperationsDeps,
  call: RequestContext,
  body: unknown,
): Promise<Reply> {
  const of = readFormParameters(body)
  try {
    const token = await judged(deps, call, of('token'), ['refresh', 'access'])
    await deps.oidcFlow.endSessionOf(token)
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
  }
  return jsonResponseWithoutEnvelope({})
}

async function userInfo(
  { oidcTokens, oidcFlow }: TokenOperationsDeps,
  call: RequestContext,
): Promise<Reply> {
  const [text = ''] = call.credentials.bearers()
  const { source } = call.credentials
  const token = await oidcTokens.judge(text, ['access'], source)
  if (typeof token === 'string') throw new Problem('UNAUTHORIZED')
  const identity = await identityOf(oidcFlow, token, call)
  const { id: sub, name, isAdmin, externalId } = identity
  return jsonResponseWithoutEnvelope({
    sub,
    name,
    z_ia: isAdmin,
    ...(externalId === null || externalId === '' ? {} : { z_eid: externalId }),
  })
}

/** @throws {Problem} UNAUTHORIZED for a token whose session has ended or does not accept it. */
async function identityOf(
  oidcFlow: LogInFlow,
  token: OidcToken,
  { credentials }: RequestContext,
): Promise<Identity> {
  try {
    return (await oidcFlow.holderOf(token, credentials)).identity
  } catch (error) {
    throw error instanceof OAuthError ? new Problem('UNAUTHORIZED') : error
  }
}

/** OpenID Connect RP-Initiated Logout. Ends only the session that the id token identifies. */
async function endSession(
  deps: TokenOperationsDeps,
  call: RequestContext,
  body: unknown,
): Promise<Reply> {
  const of = readRequestParameters(call, body)
  const session = await deps.oidcTokens.sessionOfHint(
    of('id_token_hint') ?? '',
    call.credentials.source,
  )
  if (session !== null) await deps.oidcFlow.endSessionOf(session)
  const asked = of('post_logout_redirect_uri')
  const state = of('state')
  if (asked === undefined) return redirectResponse(`${basePaths.oidc}/logged-out`)
  // @guard oidc/authorization--logout
  if (!isRedirectAllowed(asked, '/logout', deps.redirectPlaces(call))) {
    throw new OAuthError('invalid_request', 'post_logout_redirect_uri is not one that is allowed')
  }
  return redirectResponse(state === undefined ? asked : addQueryParameters(asked, { state }))
}
