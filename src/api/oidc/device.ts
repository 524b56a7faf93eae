import {
  type DeviceLogIns,
  deviceLogInLimits,
  type PendingDeviceLogIn,
} from '../../auth/oidc/device-log-ins.ts'
import { DEVICE_DONE_PATH } from '../../auth/oidc/device-flow.ts'
import { OAuthError } from '../../auth/oidc/oauth-error.ts'
import { scopesSupported } from '../../auth/oidc/public-clients.ts'
import { Problem } from '../../lib/problems.ts'
import type { Reply } from '../http/responses/envelope.ts'
import type { RequestContext } from '../http/request-context.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { basePaths } from '../http/paths.ts'
import { readOauthClientId } from './oauth-client.ts'
import { unknownHostProblem } from './discovery.ts'
import type { Issuers } from './issuers.ts'
import {
  jsonResponseWithoutEnvelope,
  catchOAuthError,
  readRequestParameters,
  addQueryParameters,
} from './oauth-responses.ts'
import {
  OAUTH_FORM_BYTES_MAX,
  oauthFormBody,
  hostHeaderParameter,
  oidcOperationDefaults,
} from './oidc-schemas.ts'
import { renderHtmlPage } from './html-page.ts'
import { escapeHtml } from '../../lib/text/escape-html.ts'

interface DeviceOperationsDeps {
  readonly deviceLogIns: DeviceLogIns
  readonly issuers: Issuers
  readonly isOffered: () => void
}

const ofPage = {
  ...oidcOperationDefaults,
  refusals: [404, 429],
  refusalShape: 'bare',
} as const

const ofForm = {
  ...ofPage,
  method: 'POST',
  body: oauthFormBody,
  bodyBytesMax: OAUTH_FORM_BYTES_MAX,
} as const

/**
 * Operations with which a user logs in on a device without a browser, by entering the device's code
 * in a browser on another device (RFC 8628).
 */
export function deviceOperations(deps: DeviceOperationsDeps): Operation[] {
  return [
    operationWithBody({
      ...ofForm,
      operationId: 'oidcDeviceAuthorization',
      summary: 'Get the codes with which a user logs in on a device',
      path: '/device_authorization',
      headers: [
        ...hostHeaderParameter,
        { name: 'authorization', description: 'Basic, with the client ID and no secret' },
      ],
      refusalShape: 'oauth',
      handle: (call, body) => catchOAuthError(() => begin(deps, call, body)),
    }),
    {
      ...ofPage,
      operationId: 'oidcDevicePage',
      summary: 'Show the page on which a user enters the code of a device',
      method: 'GET',
      path: '/device',
      handle: (call) => {
        deps.isOffered()
        return codePage(readRequestParameters(call, undefined)('user_code') ?? '')
      },
    },
    operationWithBody({
      ...ofForm,
      operationId: 'oidcDeviceCode',
      summary: 'Submit the code that a device shows',
      path: '/device',
      handle: (call, body) => orCodePage(call, () => enter(deps, call, body)),
    }),
    operationWithBody({
      ...ofForm,
      operationId: 'oidcDenyDevice',
      summary: 'Refuse the pending log-in of a device',
      path: '/device/deny',
      handle: (call, body) => orCodePage(call, () => deny(deps, call, body)),
    }),
    {
      ...ofPage,
      operationId: 'oidcDeviceDone',
      summary: 'Show the page after the log-in of a device',
      method: 'GET',
      path: DEVICE_DONE_PATH,
      handle: () => renderHtmlPage({ title: 'Your device is logged in', content: doneText }),
    },
  ]
}

const doneText = '<p>It continues automatically in a few seconds. You may close this page.</p>'

async function begin(
  deps: DeviceOperationsDeps,
  call: RequestContext,
  body: unknown,
): Promise<Reply> {
  deps.isOffered()
  const issuer = deps.issuers.of(call)
  if (issuer === null) throw unknownHostProblem()
  const of = readRequestParameters(call, body)
  const clientId = readOauthClientId(call, of('client_id'))
  const scopes = (of('scope') ?? '').split(' ').filter((scope) => scopesSupported.includes(scope))
  if (scopes.length === 0) {
    throw new OAuthError('invalid_scope', `scope must name ${scopesSupported.join(' or ')}`)
  }
  const begun = await deps.deviceLogIns.begin({ clientId, scopes }, issuer, call.credentials)
  const uri = `${issuer}/device`
  return jsonResponseWithoutEnvelope({
    device_code: begun.deviceCode,
    user_code: begun.userCode,
    verification_uri: uri,
    verification_uri_complete: addQueryParameters(uri, { user_code: begun.userCode }),
    expires_in: deviceLogInLimits.deviceLogInMs / 1000,
    interval: deviceLogInLimits.devicePollMs / 1000,
  })
}

async function enter(
  { deviceLogIns }: DeviceOperationsDeps,
  call: RequestContext,
  body: unknown,
): Promise<Reply> {
  const typed = readRequestParameters(call, body)('user_code') ?? ''
  const found = await deviceLogIns.find(typed, call.credentials.source)
  return found === null ? codePage('', unknownCode, 404) : devicePage(found)
}

async function deny(
  { deviceLogIns }: DeviceOperationsDeps,
  call: RequestContext,
  body: unknown,
): Promise<Reply> {
  const typed = readRequestParameters(call, body)('user_code') ?? ''
  const isDenied = await deviceLogIns.deny(typed, call.credentials.source)
  if (!isDenied) return codePage('', unknownCode, 404)
  const content = '<p>It has no access. If somebody sent you its code, tell your administrator.</p>'
  return renderHtmlPage({ title: 'The device was refused', content })
}

const unknownCode = 'No device waits under that code. Compare it, or begin again on the device.'

/**
 * Runs a step of a log-in. If too many codes were entered, by this user or by others, the browser
 * receives the page for the code, with the reason.
 */
async function orCodePage(call: RequestContext, run: () => Promise<Reply>): Promise<Reply> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof Problem && error.code === 'SERVER_TOO_MANY_REQUESTS') {
      call.refusalPage = codePage('', 'Too many codes were entered. Wait a minute.', 429)
    }
    throw error
  }
}

function codePage(userCode: string, fault = '', status = 200): Reply {
  // @guard device-codes--escaped
  const content =
    '<p class="soft">Enter the code that your device or terminal shows.</p>' +
    `<form method="post" action="${basePaths.oidc}/device"><label for="user_code">Code</label>` +
    `<input id="user_code" class="code" name="user_code" value="${escapeHtml(userCode.slice(0, 32))}" ` +
    'autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="32" ' +
    'title="eight letters" required autofocus><button type="submit">Continue</button></form>'
  return renderHtmlPage({ title: 'Log in a device', content, fault, status })
}

/**
 * Page that shows the user which device would be logged in. The page warns the user, because an
 * attacker could have sent the user the code of the attacker's device.
 */
function devicePage({ userCode, id, address }: PendingDeviceLogIn): Reply {
  const byPassword = addQueryParameters(`${basePaths.oidc}/login/password`, { authRequestID: id })
  const content =
    `<p>A device at <code>${escapeHtml(address)}</code> asks to act as you. Continue only if you began ` +
    'this yourself, and the device shows this very code:</p>' +
    `<p class="code">${escapeHtml(userCode)}</p>` +
    `<a class="button" href="${escapeHtml(byPassword)}">Log in to allow it</a>` +
    `<form method="post" action="${basePaths.oidc}/device/deny">` +
    `<input type="hidden" name="user_code" value="${escapeHtml(userCode)}">` +
    '<button class="second" type="submit">It is not mine: refuse it</button></form>'
  return renderHtmlPage({ title: 'Is this your device?', content })
}
