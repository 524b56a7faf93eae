import { createHash, timingSafeEqual } from 'node:crypto'

import { oidcClientIds } from '../../pki/oidc-token.ts'
import { OAuthError } from './oauth-error.ts'
import type { RedirectTargets } from './redirect-targets.ts'

export const scopesSupported: readonly string[] = ['openid', 'offline_access']

const REDIRECT_CHARACTERS_MAX = 256
const STATE_CHARACTERS_MAX = 512
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/
const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1']
const CUSTOM_SCHEME = 'openziti://auth'
/**
 * Path of the console. A console redeems its authorization code at the controller that serves it.
 */
export const CONSOLE_PATH = '/console/'
/**
 * URLs of these schemes contain code or content that the browser runs or shows. Such URLs are
 * refused even if an administrator has registered them.
 */
const RUNNING_SCHEMES: readonly string[] = ['javascript:', 'data:', 'vbscript:', 'blob:', 'file:']

/** The checked parameters of an authorization request (RFC 6749, 4.1.1; RFC 7636, 4.3). */
export interface AuthorizationRequest {
  readonly clientId: string
  readonly redirectUri: string
  /** SHA-256 of the verifier, base64url. */
  readonly challenge: string
  readonly state: string
  readonly nonce: string
  readonly scopes: readonly string[]
  readonly configTypes: readonly string[]
}

type Parameters = (name: string) => string | undefined

/**
 * Returns the redirect URI of a request, if it is safe to send a response to it.
 * @throws {OAuthError} The caller must show it to the user, and must not send it to the redirect
 * URI.
 */
export function validateRedirectUri(of: Parameters, places: RedirectTargets): string {
  const clientId = of('client_id') ?? ''
  if (!oidcClientIds.includes(clientId)) {
    throw new OAuthError('invalid_client', `client_id must be one of ${oidcClientIds.join(', ')}`)
  }
  const redirectUri = of('redirect_uri') ?? ''
  if (!isRedirectAllowed(redirectUri, '/callback', places)) {
    throw new OAuthError('invalid_request', 'redirect_uri is not one that is allowed')
  }
  return redirectUri
}

/** @throws {OAuthError} The caller may send it to the redirect URI. */
export function validateAuthorizationRequest(
  of: Parameters,
  redirectUri: string,
  configTypes: readonly string[],
): AuthorizationRequest {
  if (of('response_type') !== 'code') {
    throw new OAuthError('unsupported_response_type', 'response_type must be code')
  }
  if (of('prompt') === 'none') {
    throw new OAuthError('login_required', 'there is no session that could be continued')
  }
  const scopes = (of('scope') ?? '').split(' ').filter((scope) => scopesSupported.includes(scope))
  if (scopes.length === 0) {
    throw new OAuthError('invalid_scope', `scope must name ${scopesSupported.join(' or ')}`)
  }
  const challenge = of('code_challenge') ?? ''
  // @guard oidc/authorization--method
  if (of('code_challenge_method') !== 'S256' || !CHALLENGE.test(challenge)) {
    throw new OAuthError(
      'invalid_request',
      'code_challenge with code_challenge_method S256 is required',
    )
  }
  const [state, nonce] = [of('state') ?? '', of('nonce') ?? '']
  // @guard oidc/floods--state
  if (Math.max(state.length, nonce.length) > STATE_CHARACTERS_MAX) {
    const most = `state and nonce have at most ${STATE_CHARACTERS_MAX} characters`
    throw new OAuthError('invalid_request', most)
  }
  const clientId = of('client_id') ?? ''
  return { clientId, redirectUri, challenge, state, nonce, scopes, configTypes }
}

/**
 * Accepts a redirect URI that an administrator has registered, except with a scheme in
 * `RUNNING_SCHEMES`. Also accepts a URI whose scheme, host and path equal those of a built-in one.
 * For loopback, the port may differ (RFC 8252, 7.3). An unregistered URI must have no user, query
 * or fragment.
 */
export function isRedirectAllowed(
  text: string,
  end: '/callback' | '/logout',
  { ownHosts, redirectUris, postLogoutUris }: RedirectTargets,
): boolean {
  if (text.length > REDIRECT_CHARACTERS_MAX || !URL.canParse(text)) return false
  if (text === CUSTOM_SCHEME + end) return true
  const url = new URL(text)
  const registered = end === '/callback' ? redirectUris : postLogoutUris
  // @guard oidc/authorization--registered
  if (registered.includes(text)) return !RUNNING_SCHEMES.includes(url.protocol)
  const { protocol, hostname, host, port, pathname } = url
  // The text must equal the serialized URL, so that no other parser can read a different host from
  // it.
  // @guard oidc/authorization--text
  if (
    text !== `${protocol}//${host}${pathname}` &&
    text !== `${protocol}//${hostname}:${port}${pathname}`
  )
    return false
  const withPort = `${hostname}:${port === '' ? '443' : port}`
  const isOwn = protocol === 'https:' && ownHosts.includes(withPort)
  // @guard oidc/authorization--console
  if (end === '/callback' && pathname === CONSOLE_PATH) return isOwn
  // @guard oidc/authorization--path
  if (pathname !== `/auth${end}`) return false
  // @guard oidc/authorization--place
  return isOwn || (LOOPBACK.includes(hostname) && ['http:', 'https:'].includes(protocol))
}

/** Compares a verifier with its challenge (RFC 7636, 4.6; only S256). */
export function matchesCodeChallenge(challenge: string, verifier: string): boolean {
  // @guard oidc/authorization--verifier
  if (!VERIFIER.test(verifier)) return false
  const made = createHash('sha256').update(verifier).digest()
  const wanted = Buffer.from(challenge, 'base64url')
  return made.length === wanted.length && timingSafeEqual(made, wanted)
}
