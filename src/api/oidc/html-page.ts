import { createHash } from 'node:crypto'

import { responseWithoutEnvelope, type Reply } from '../http/responses/envelope.ts'
import { noReferrerHeaders } from './oauth-responses.ts'
import { escapeHtml } from '../../lib/text/escape-html.ts'

/** An HTML page that a browser shows to a user during a log-in. */
interface FramedPage {
  readonly title: string
  /** HTML below the title. Untrusted text in it must be escaped. */
  readonly content: string
  /** A message about the previous attempt; '' if there is none. */
  readonly fault?: string
  readonly status?: number
  /**
   * An origin or a URL scheme, in addition to the origin of the page, to which the response to a
   * submitted form may redirect.
   */
  readonly formTarget?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** The console's logo on a solid background. */
const mark = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#3350d0"/>' +
    '<path d="M15.5 5.5v14.5H7.5z M17.5 10v10h7z M5.5 22.5h21c-1.2 2.3-3.3 3.7-5.5 3.7H11c-2.2 0-4.3-1.4-5.5-3.7z" fill="#fff"/></svg>',
)}`

/**
 * The style of every page: as in the console's log-in, and light or dark like the system. On
 * phones, fields have a font size of 16 px, because phones zoom in on smaller ones, and touch
 * targets are 44 px high.
 */
const style = `
:root{color-scheme:light dark;--ground:light-dark(#f6f7f9,#0e1014);--card:light-dark(#fff,#15181e);
--ink:light-dark(#171a21,#eceef3);--soft:light-dark(#4b5262,#b4bac7);--line:light-dark(#848b9a,#6d7687);
--act:light-dark(#3350d0,#4059d6);--on:#fff;--bad:light-dark(#b3261e,#ff8f86);
--tint:light-dark(#fce9e7,#3b1715)}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;min-height:100svh;display:grid;place-items:center;padding:1rem;
background:var(--ground);color:var(--ink);font:.875rem/1.5 system-ui,sans-serif}
main{width:100%;max-width:23rem}
.brand{display:flex;align-items:center;gap:.55rem;margin:0 0 1.5rem;color:var(--soft);font-size:.875rem;font-weight:600}
.brand::before{content:"";width:1.5rem;height:1.5rem;background:url("${mark}")}
h1{margin:0 0 .5rem;font-size:1.625rem;font-weight:600;line-height:1.3}
h2{margin:1.75rem 0 .5rem;font-size:1.0625rem}
p{margin:.5rem 0}
.soft{color:var(--soft);font-size:.8125rem}
.fault{margin:1rem 0;padding:.7rem .85rem;border-radius:.5rem;background:var(--tint);color:var(--bad)}
label{display:block;margin:1rem 0 .3rem;font-size:.8125rem;font-weight:500}
input{display:block;width:100%;min-height:2.125rem;padding:.3125rem .75rem;border:1px solid var(--line);border-radius:.3125rem;
background:var(--card);color:inherit;font:inherit}
button,.button{display:block;width:100%;min-height:2.5rem;margin-top:1rem;padding:.5625rem 1rem;border:1px solid var(--act);
border-radius:.3125rem;background:var(--act);color:var(--on);font:inherit;font-weight:500;text-align:center;
text-decoration:none;cursor:pointer}
.second{border-color:light-dark(#e2e5eb,#272c36);background:var(--card);color:inherit}
button:hover,.button:hover{filter:brightness(1.08)}
:focus-visible{outline:2px solid var(--act);outline-offset:1px}
code,.code,.key{font-family:ui-monospace,monospace;overflow-wrap:anywhere}
.key{padding:.75rem;border:1px dashed var(--line);border-radius:.5rem;text-align:center}
.code{margin:1rem 0;padding:.75rem;border:1px dashed var(--line);border-radius:.5rem;text-align:center;font-size:1.5rem;
letter-spacing:.12em}
.list{display:grid;grid-template-columns:1fr 1fr;gap:.25rem 1rem;margin:.75rem 0;padding:0;list-style:none}
.qr{display:block;width:12rem;height:12rem;margin:1rem auto;background:#fff;border-radius:.5rem}
@media(max-width:30rem){body{place-items:start stretch;padding:1.5rem 1.25rem;font-size:1rem}
main{max-width:none}input,button,.button{min-height:2.75rem}}
`.replaceAll('\n', '')
const styleHash = createHash('sha256').update(style).digest('base64')

/**
 * A plain HTML page, without scripts and without assets from other servers. No other page may embed
 * it in a frame.
 */
export function renderHtmlPage({
  title,
  content,
  fault = '',
  status = 200,
  formTarget = '',
  headers = {},
}: FramedPage): Reply {
  const faultHtml = fault === '' ? '' : `<p class="fault" role="alert">${escapeHtml(fault)}</p>`
  const body =
    '<!doctype html><html lang="en"><head><meta charset="utf-8">' +
    '<meta name="viewport" content="width=device-width,initial-scale=1">' +
    // Without this link, browsers request /favicon.ico, which the policy below forbids.
    '<link rel="icon" href="data:,">' +
    `<title>${escapeHtml(title)}</title><style>${style}</style></head><body><main>` +
    `<p class="brand">Flotilla</p><h1>${escapeHtml(title)}</h1>${faultHtml}${content}</main></body></html>`
  // @guard oidc/authorization--framed
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${styleHash}'`,
    'img-src data:',
    `form-action 'self' ${formTarget}`.trim(),
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')
  return {
    ...responseWithoutEnvelope(body, 'text/html; charset=utf-8'),
    status,
    headers: {
      'content-security-policy': policy,
      'x-frame-options': 'DENY',
      ...noReferrerHeaders,
      ...headers,
    },
  }
}
