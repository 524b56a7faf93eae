import { DEVICE_DONE_PATH } from '../../auth/oidc/device-flow.ts'
import { CONSOLE_PATH } from '../../auth/oidc/public-clients.ts'
import type { Reply } from '../http/responses/envelope.ts'
import { basePaths } from '../http/paths.ts'
import { renderHtmlPage } from './html-page.ts'
import { escapeHtml } from '../../lib/text/escape-html.ts'

/** The page of one step of a log-in. */
interface LogInPage extends LogInFlowPage {
  readonly asks: 'password' | 'code' | 'enrollment'
}

/** Properties of a page in a log-in flow. */
export interface LogInFlowPage {
  readonly id: string
  /**
   * Redirect URI of the flow. Browsers apply the Content-Security-Policy of a page to the redirects
   * of its form, so that policy must allow this URI.
   */
  readonly redirectUri: string
  /** A message about the previous attempt; '' for the first attempt. */
  readonly fault: string
  readonly status: number
}

interface LogInForm {
  readonly path: string
  readonly title: string
  /** HTML of the form's input fields. */
  readonly fields: string
  readonly button: string
}

const forms: Readonly<Record<LogInPage['asks'], LogInForm>> = {
  password: {
    path: '/login/password',
    title: 'Log in',
    fields:
      '<label for="username">User name</label>' +
      '<input id="username" name="username" autocomplete="username" autocapitalize="none" ' +
      'spellcheck="false" required autofocus>' +
      '<label for="password">Password</label>' +
      '<input id="password" name="password" type="password" autocomplete="current-password" required>',
    button: 'Continue',
  },
  code: {
    path: '/login/totp',
    title: 'Second factor',
    fields:
      '<p class="soft">Enter the code that your authenticator app shows, or one of your recovery codes.</p>' +
      '<label for="code">Code</label>' +
      '<input id="code" name="code" autocomplete="one-time-code" autocapitalize="none" ' +
      'spellcheck="false" required autofocus>',
    button: 'Continue',
  },
  enrollment: {
    path: '/login/totp/enroll',
    title: 'Set up an authenticator app',
    fields:
      '<p>You need a code of an authenticator app to log in, and none is set up for you yet.</p>' +
      '<p class="soft">Have the app at hand, and a place to keep recovery codes in.</p>',
    button: 'Set up an app',
  },
}

export function renderLogInPage({ asks, ...page }: LogInPage): Reply {
  return renderFormPage(page, forms[asks])
}

/**
 * Page that ends a browser log-in for which a token of an external JWT signer is missing; no form
 * can provide such a token.
 */
export function renderExternalTokenPage(
  { redirectUri, fault, status }: LogInFlowPage,
  signerName: string,
): Reply {
  const content =
    purposeOf(redirectUri) +
    `<p>You also need a token of ${escapeHtml(signerName)} to log in, and this page cannot ask for one.</p>` +
    '<p class="soft">Log in with a program that brings it, such as <code>flotilla login</code> with ' +
    '<code>--user</code> and <code>--jwt-file</code>. You can close this page.</p>'
  return renderHtmlPage({ title: 'A token is missing', content, fault, status })
}

/** A page with one form that continues the flow. */
export function renderFormPage(
  { id, redirectUri, fault, status }: LogInFlowPage,
  { path, title, fields, button }: LogInForm,
): Reply {
  const content =
    purposeOf(redirectUri) +
    `<form method="post" action="${basePaths.oidc}${path}">` +
    `<input type="hidden" name="id" value="${escapeHtml(id)}">${fields}` +
    `<button type="submit">${button}</button></form>` +
    wayBackOf(redirectUri)
  const formTarget = targetOf(redirectUri)
  return renderHtmlPage({
    title,
    content,
    fault,
    status,
    formTarget,
    headers: { 'auth-request-id': id },
  })
}

/**
 * Describes the program that started the log-in, so that users notice a log-in that they did not
 * start.
 */
function purposeOf(redirectUri: string): string {
  const { protocol, pathname } = new URL(redirectUri)
  if (pathname.endsWith(DEVICE_DONE_PATH)) {
    return '<p class="soft">You let a device act as you. Its address was on the page before.</p>'
  }
  const isHere = protocol === 'http:'
  return isHere ? '<p class="soft">For a program on this computer that asked for it.</p>' : ''
}

/** A link back to the console, which offers other ways to log in; '' for any other redirect URI. */
function wayBackOf(redirectUri: string): string {
  const { protocol, pathname } = new URL(redirectUri)
  return protocol === 'https:' && pathname === CONSOLE_PATH
    ? `<a class="button second" href="${escapeHtml(redirectUri)}">Back to the console</a>`
    : ''
}

function targetOf(redirectUri: string): string {
  const { protocol, origin } = new URL(redirectUri)
  return protocol === 'https:' || protocol === 'http:' ? origin : protocol
}
