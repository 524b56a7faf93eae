import { decodeJwt } from 'jose'

import type { JsonObject } from '../lib/text/canonical-json.ts'
import { JWT_CHARACTERS_MAX } from './jwt-verifier.ts'

/**
 * Accepted OIDC client ids: those that OpenZiti SDKs and tools use. These are public clients
 * without a secret.
 */
export const oidcClientIds: readonly string[] = ['native', 'openziti']

/** Purpose of a controller-issued token, as OpenZiti encodes it in the claim `z_t`. */
export const tokenTypes = { access: 'a', refresh: 'r' } as const
export type TokenPurpose = keyof typeof tokenTypes

/** Pattern of an issuer: each controller is an issuer, at `/oidc` of its listeners. */
const ISSUER = /^https:\/\/[^/?#@\s]+\/oidc$/

/**
 * A token of an OIDC session whose signature and times were valid when it was verified. A current
 * member signed it or, for a refresh token, possibly a removed member.
 */
export interface OidcToken {
  readonly text: string
  /** The id for revoking only this token; '' when the token has no id. */
  readonly tokenId: string
  readonly sessionId: string
  readonly identityId: string
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly issuer: string
  /**
   * Hex SHA-1 of the client certificates to which the token is bound; the token is valid only
   * together with one of them. Empty: the token is not bound.
   */
  readonly fingerprints: readonly string[]
  /**
   * For a refresh token: number of tokens in its chain of refreshes, including the one from the
   * log-in. 0 for another kind of token.
   */
  readonly generation: number
  /** Time at which the token was issued, UTC ms. */
  readonly issuedAtMs: number
  readonly expiresAtMs: number
}

/**
 * Reads the claims of a token whose signature and time are already verified.
 * @returns null when the purpose or the audience differs from the expected one, or when a claim is
 * missing or malformed.
 */
export function parseOidcClaims(
  text: string,
  claims: JsonObject,
  purpose: TokenPurpose,
): OidcToken | null {
  const { iss, sub, aud, iat, exp, jti, scopes, z_t: type, z_asid: sessionId } = claims
  const { z_cfs: prints } = claims
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  const clientId = audiences.find((one) => typeof one === 'string' && oidcClientIds.includes(one))
  // @guard access-token-at-a-router--audience, oidc/code-flow--purpose, oidc/tokens--audience
  if (type !== tokenTypes[purpose] || typeof clientId !== 'string' || audiences.length !== 1) {
    return null
  }
  // The signing key identifies the controller, so `iss` only has to match the pattern: a controller
  // signs only tokens that name itself as issuer.
  // @guard oidc/tokens--issuer
  if (typeof iss !== 'string' || !ISSUER.test(iss)) return null
  if (typeof sub !== 'string' || typeof sessionId !== 'string') return null
  if (typeof exp !== 'number' || typeof iat !== 'number' || !Array.isArray(scopes)) return null
  return {
    text,
    tokenId: typeof jti === 'string' ? jti : '',
    sessionId,
    identityId: sub,
    clientId,
    issuer: iss,
    scopes: scopes.filter((scope) => typeof scope === 'string'),
    fingerprints: Array.isArray(prints) ? prints.filter((one) => typeof one === 'string') : [],
    generation: generationIn(claims),
    issuedAtMs: iat * 1000,
    expiresAtMs: exp * 1000,
  }
}

function generationIn({ generation }: JsonObject): number {
  return Number.isSafeInteger(generation) ? Number(generation) : 0
}

/**
 * Whether a string looks like an access token of a controller, according to its unverified claims.
 */
export function looksLikeAccessToken(text: string): boolean {
  return unverifiedClaims(text)?.['z_t'] === tokenTypes.access
}

/** The unverified claims of a token; null when the string is not a token. */
export function unverifiedClaims(text: string): Readonly<Record<string, unknown>> | null {
  if (text.length > JWT_CHARACTERS_MAX) return null
  try {
    return decodeJwt(text)
  } catch {
    return null
  }
}
