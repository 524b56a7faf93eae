import { createHash } from 'node:crypto'

import { bareAnswer, type Reply } from '../answers/envelope.ts'
import { basePaths } from '../paths.ts'
import { neverReferred } from './oauth-answers.ts'

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

const style =
  'body{font-family:system-ui,sans-serif;margin:0;min-height:100vh;display:grid;place-items:center;' +
  'background:#f3f5f8;color:#1b2733}main{background:#fff;padding:2rem;border-radius:.5rem;' +
  'width:min(22rem,86vw);box-shadow:0 1px 6px #0002}h1{font-size:1.25rem;margin:0 0 1rem}' +
  'label{display:block;margin:.75rem 0 .25rem}input{width:100%;box-sizing:border-box;padding:.6rem;' +
  'font-size:1rem;border:1px solid #9aa7b4;border-radius:.25rem}button{margin-top:1.25rem;width:100%;' +
  'padding:.7rem;font-size:1rem;border:0;border-radius:.25rem;background:#14507a;color:#fff}' +
  '.fault{color:#9d1c1c}'
const styleHash = createHash('sha256').update(style).digest('base64')

const forms: Readonly<
  Record<LogInPage['asks'], { readonly path: string; readonly fields: string }>
> = {
  password: {
    path: '/login/password',
    fields:
      '<label for="username">User name</label>' +
      '<input id="username" name="username" autocomplete="username" required autofocus>' +
      '<label for="password">Password</label>' +
      '<input id="password" name="password" type="password" autocomplete="current-password" required>',
  },
  code: {
    path: '/login/totp',
    fields:
      '<label for="code">Code of your authenticator, or a recovery code</label>' +
      '<input id="code" name="code" autocomplete="one-time-code" required autofocus>',
  },
}

/** Plain HTML without a script or a foreign asset; no other page may frame it. */
export function pageAnswer({ id, asks, redirectUri, fault, status }: LogInPage): Reply {
  const { path, fields } = forms[asks]
  const told = fault === '' ? '' : `<p class="fault" role="alert">${escaped(fault)}</p>`
  const body =
    '<!doctype html><html lang="en"><head><meta charset="utf-8">' +
    '<meta name="viewport" content="width=device-width,initial-scale=1"><title>Log in</title>' +
    `<style>${style}</style></head><body><main><h1>Log in</h1>${told}` +
    `<form method="post" action="${basePaths.oidc}${path}">` +
    `<input type="hidden" name="id" value="${escaped(id)}">${fields}` +
    '<button type="submit">Continue</button></form></main></body></html>'
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${styleHash}'`,
    `form-action 'self' ${targetOf(redirectUri)}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')
  return {
    ...bareAnswer(body, 'text/html; charset=utf-8'),
    status,
    headers: {
      'content-security-policy': policy,
      'x-frame-options': 'DENY',
      'auth-request-id': id,
      ...neverReferred,
    },
  }
}

function targetOf(redirectUri: string): string {
  const { protocol, origin } = new URL(redirectUri)
  return protocol === 'https:' || protocol === 'http:' ? origin : protocol
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
