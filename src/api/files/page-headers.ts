import type { MemberView } from '../../ports/cluster-view.ts'

/** Name of the security header rules for the pages of a mount. */
export type PageHeaderPolicy = 'console' | 'spa'

const ORIGINS_MAX = 64
const ORIGIN = /^https:\/\/(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/
/** APIs that the console calls; the headers must permit connections to them. */
const askedApis = new Set(['edge-management', 'fabric'])

/** Headers of all pages: no framing, no type sniffing, no referrer. */
const common = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
} as const

/**
 * Security headers of the pages of a mount. The console may run only its own scripts, may not
 * create markup from text (Trusted Types), and may connect only to members of the cluster. Pages
 * from an operator's folder may load scripts and connect anywhere; their policy forbids framing,
 * plugins and a base URL of another origin.
 */
export function pageSecurityHeaders(
  policy: PageHeaderPolicy,
  members: readonly Pick<MemberView, 'apiAddresses'>[],
): Readonly<Record<string, string>> {
  const directives = policy === 'console' ? consoleDirectives(members) : spaDirectives
  return { ...common, 'content-security-policy': directives.join('; ') }
}

const spaDirectives = ["frame-ancestors 'none'", "object-src 'none'", "base-uri 'self'"]

function consoleDirectives(members: readonly Pick<MemberView, 'apiAddresses'>[]): string[] {
  // @guard page-of-a-stranger--frame, page-of-a-stranger--text
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    ["connect-src 'self'", ...originsOf(members)].join(' '),
    "worker-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ]
}

/**
 * HTTPS origins of the cluster members. Members report their own addresses. An address that is not
 * a plain origin is omitted, because it could add directives to the Content-Security-Policy.
 */
function originsOf(members: readonly Pick<MemberView, 'apiAddresses'>[]): string[] {
  const urls = members.flatMap(({ apiAddresses }) =>
    apiAddresses.flatMap(({ api, url }) =>
      askedApis.has(api) && URL.canParse(url) ? [new URL(url).origin] : [],
    ),
  )
  // @guard page-of-a-stranger--origins
  return [...new Set(urls)].filter((origin) => ORIGIN.test(origin)).slice(0, ORIGINS_MAX)
}
