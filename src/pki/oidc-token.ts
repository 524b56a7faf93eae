import { decodeJwt } from 'jose'

import type { JsonObject } from '../lib/text/canonical-json.ts'
import { JWT_CHARACTERS_MAX } from './jwt-verifier.ts'

/** Clients of OIDC: SDKs and tools of the API family. None of them has a secret. */
export const clientIds: readonly string[] = ['native', 'openziti']

/** Purpose of a token of the controllers, as the API family writes it in `z_t`. */
export const tokenTypes = { access: 'a', refresh: 'r' } as const
export type TokenPurpose = keyof typeof tokenTypes

/** Each controller is one below the root of its listeners. */
const ISSUER = /^https:\/\/[^/?#@\s]+\/oidc$/

/** A token of an OIDC session that a member signed and whose time is now. */
export interface OidcToken {
  readonly text: string
  /** The id that revokes the token alone; '' where it says none. */
  readonly tokenId: string
  readonly sessionId: string
  readonly identityId: string
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly issuer: string
  /** Hex SHA-1 of the certificates by one of which alone it counts. */
  readonly fingerprints: readonly string[]
  /** Refreshes that have led to a refresh token, the log-in included; 0: to none. */
  readonly generation: number
  /** UTC ms. */
  readonly issuedAtMs: number
  readonly expiresAtMs: number
}

/**
 * Reads the claims of a token whose signature and time were found good.
 * @returns null: another purpose or audience, or a claim that is missing.
 */
export function oidcTokenOf(
  text: string,
  claims: JsonObject,
  purpose: TokenPurpose,
): OidcToken | null {
  const { iss, sub, aud, iat, exp, jti, scopes, z_t: type, z_asid: sessionId } = claims
  const { z_cfs: prints } = claims
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  const clientId = audiences.find((one) => typeof one === 'string' && clientIds.includes(one))
  // @guard access-token-at-a-router--audience, oidc/code-flow--purpose, oidc/tokens--audience
  if (type !== tokenTypes[purpose] || typeof clientId !== 'string' || audiences.length !== 1) {
    return null
  }
  // The key says which controller it is of: each names itself alone, and signs for no other.
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

/** Whether a text may be an access token of ours, by what it says; nothing is proven by that. */
export function seemsAccessToken(text: string): boolean {
  return unverifiedClaims(text)?.['z_t'] === tokenTypes.access
}

/** Null for a text that is no token. */
export function unverifiedClaims(text: string): Readonly<Record<string, unknown>> | null {
  if (text.length > JWT_CHARACTERS_MAX) return null
  try {
    return decodeJwt(text)
  } catch {
    return null
  }
}
