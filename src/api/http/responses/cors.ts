import { Problem, fieldProblem } from '../../../lib/problems.ts'

// Cross-origin rules for consoles in a browser. Every origin is allowed: browsers send no session
// automatically, because the session token is in a header and never in a cookie.

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
const UNSAFE_METHODS = new Set(['PUT', 'PATCH', 'DELETE'])
const HEADERS = new Set([
  'accept',
  'accept-language',
  'authorization',
  'content-language',
  'content-type',
  'if-match',
  'if-none-match',
  'last-event-id',
  'mfa-validation-code',
  'net-min-index',
  'net-request-id',
  'net-session',
  'origin',
  'session-token',
  'traceparent',
  'tracestate',
  'ziti-token-issuer-id',
  'zt-session',
])
const REQUESTED_HEADERS_MAX = 32

export const corsHeaders: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'access-control-allow-credentials': 'true',
  // `net-index` lets a console that switches to another controller continue at the same log index.
  'access-control-expose-headers': 'etag, expires-at, net-index, net-stale-ms, retry-after',
}

/**
 * The headers of the response to an OPTIONS request. `asked` contains its
 * Access-Control-Request-Method and -Headers.
 * @throws {Problem} COULD_NOT_VALIDATE if the method is missing, METHOD_NOT_ALLOWED,
 * HEADER_NOT_ALLOWED.
 */
export function corsPreflightHeaders(asked: {
  method: string | undefined
  headers: string | undefined
}): Readonly<Record<string, string>> {
  if (asked.method === undefined) {
    throw fieldProblem('Access-Control-Request-Method', 'is required')
  }
  if (!METHODS.has(asked.method)) throw new Problem('METHOD_NOT_ALLOWED')
  const names = (asked.headers ?? '')
    .split(',', REQUESTED_HEADERS_MAX + 1)
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '')
  if (names.length > REQUESTED_HEADERS_MAX || names.some((name) => !HEADERS.has(name))) {
    throw new Problem('HEADER_NOT_ALLOWED')
  }
  return {
    ...corsHeaders,
    ...(names.length === 0 ? {} : { 'access-control-allow-headers': names.join(', ') }),
    ...(UNSAFE_METHODS.has(asked.method) ? { 'access-control-allow-methods': asked.method } : {}),
  }
}
