import { DEVICE_DONE } from '../../auth/oidc/log-in-flow.ts'
import type { Reply } from '../answers/envelope.ts'
import { basePaths } from '../paths.ts'
import { escaped, framed } from './page-frame.ts'

/** The page of one step of a log-in. */
export interface LogInPage {
  readonly id: string
  readonly asks: 'password' | 'code'
  /** The end of the flow: browsers hold redirects of a form to the policy of its page. */
  readonly redirectUri: string
  /** A sentence about the last attempt; '': this is the first. */
  readonly fault: string
  readonly status: number
}

const forms: Readonly<
  Record<
    LogInPage['asks'],
    { readonly path: string; readonly title: string; readonly fields: string }
  >
> = {
  password: {
    path: '/login/password',
    title: 'Log in',
    fields:
      '<label for="username">User name</label>' +
      '<input id="username" name="username" autocomplete="username" autocapitalize="none" ' +
      'spellcheck="false" required autofocus>' +
      '<label for="password">Password</label>' +
      '<input id="password" name="password" type="password" autocomplete="current-password" required>',
  },
  code: {
    path: '/login/totp',
    title: 'Second factor',
    fields:
      '<p class="soft">Enter the code that your authenticator app shows, or one of your recovery codes.</p>' +
      '<label for="code">Code</label>' +
      '<input id="code" name="code" autocomplete="one-time-code" autocapitalize="none" ' +
      'spellcheck="false" required autofocus>',
  },
}

export function pageAnswer({ id, asks, redirectUri, fault, status }: LogInPage): Reply {
  const { path, title, fields } = forms[asks]
  const content =
    purposeOf(redirectUri) +
    `<form method="post" action="${basePaths.oidc}${path}">` +
    `<input type="hidden" name="id" value="${escaped(id)}">${fields}` +
    '<button type="submit">Continue</button></form>'
  const formTarget = targetOf(redirectUri)
  return framed({ title, content, fault, status, formTarget, headers: { 'auth-request-id': id } })
}

/** A person who did not begin the log-in may notice it by what it is for. */
function purposeOf(redirectUri: string): string {
  const { protocol, pathname } = new URL(redirectUri)
  if (pathname.endsWith(DEVICE_DONE)) {
    return '<p class="soft">You let a device act as you. Its address was on the page before.</p>'
  }
  const isHere = protocol === 'http:'
  return isHere ? '<p class="soft">For a program on this computer that asked for it.</p>' : ''
}

function targetOf(redirectUri: string): string {
  const { protocol, origin } = new URL(redirectUri)
  return protocol === 'https:' || protocol === 'http:' ? origin : protocol
}
