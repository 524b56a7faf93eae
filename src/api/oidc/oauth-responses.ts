import { OAuthError } from '../../auth/oidc/oauth-error.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import type { RequestContext } from '../http/request-context.ts'
import { responseWithoutEnvelope, type Reply } from '../http/responses/envelope.ts'

/** A response without an envelope, as OAuth requires. */
export function jsonResponseWithoutEnvelope(value: Json, status = 200): Reply {
  return { ...responseWithoutEnvelope(JSON.stringify(value)), status }
}

/** A redirect with the status that OpenZiti clients expect. */
export function redirectResponse(location: string): Reply {
  return {
    status: 302,
    body: '',
    contentType: 'text/plain',
    // @guard oidc/code-flow--referrer
    headers: { location, ...noReferrerHeaders },
  }
}

/** Headers of pages: browsers must send no referrer, because URLs contain the ids of flows. */
export const noReferrerHeaders = { 'referrer-policy': 'no-referrer' } as const

/** Error response of OAuth (RFC 6749, 5.2). */
export function oauthErrorResponse({ code, message }: OAuthError): Reply {
  return jsonResponseWithoutEnvelope({ error: code, error_description: message }, 400)
}

/** Returns the response of `handle`, or an error response if `handle` throws an OAuth error. */
export async function catchOAuthError(handle: () => Promise<Reply>): Promise<Reply> {
  try {
    return await handle()
  } catch (error) {
    if (error instanceof OAuthError) return oauthErrorResponse(error)
    throw error
  }
}

/** Adds query parameters to the URL. */
export function addQueryParameters(url: string, added: Readonly<Record<string, string>>): string {
  const text = new URLSearchParams(added).toString()
  return `${url}${url.includes('?') ? '&' : '?'}${text}`
}

const FORM_PARAMETERS_MAX = 64

/**
 * Parameters of a request by name: from its form or JSON body or, if the body lacks the parameter,
 * from its query. A repeated parameter counts as missing (RFC 6749, 3.1).
 */
export function readRequestParameters(
  call: RequestContext,
  body: unknown,
): (name: string) => string | undefined {
  const form = formIn(body)
  return (name) => onlyOf(form.get(name) ?? call.all(name))
}

/** Parameters of a request, only from its body, because a secret in a URL would be logged. */
export function readFormParameters(body: unknown): (name: string) => string | undefined {
  const form = formIn(body)
  return (name) => onlyOf(form.get(name) ?? [])
}

/**
 * Parameters of a token request. OpenZiti BrowZer sends them in the query, with an empty JSON body.
 * The query of any other request is ignored.
 */
export function readTokenParameters(
  call: RequestContext,
  body: unknown,
): (name: string) => string | undefined {
  const isEmptyJson = typeof body === 'object' && Object.keys(body ?? {}).length === 0
  return isEmptyJson ? readRequestParameters(call, body) : readFormParameters(body)
}

function onlyOf(values: readonly string[]): string | undefined {
  const [first] = values
  // @guard oidc/floods--twice
  return values.length === 1 && first !== '' ? first : undefined
}

function formIn(body: unknown): Map<string, string[]> {
  return typeof body === 'string' ? formOf(body) : objectOf(body)
}

function formOf(text: string): Map<string, string[]> {
  const form = new Map<string, string[]>()
  let count = 0
  for (const [name, value] of new URLSearchParams(text)) {
    count += 1
    if (count > FORM_PARAMETERS_MAX) break
    const values = form.get(name)
    if (values === undefined) form.set(name, [value])
    else values.push(value)
  }
  return form
}

function objectOf(body: unknown): Map<string, string[]> {
  const entries = Object.entries((body ?? {}) as Readonly<Record<string, unknown>>)
  return new Map(
    entries.flatMap(([name, value]): [string, string[]][] =>
      typeof value === 'string' ? [[name, [value]]] : [],
    ),
  )
}
