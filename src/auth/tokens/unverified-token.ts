import { isObject } from '../../entities/check-fields.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { jsonDepth } from '../../lib/bounds/json-depth.ts'

export const unverifiedTokenLimits = {
  /** Maximum characters of a token; a longer token is not read. */
  charactersMax: 24 * 1024,
  /** Maximum nesting depth of the token's header, and of its claims. */
  depthMax: 16,
  /** Maximum bearer tokens that are read from one request. */
  candidatesMax: 3,
} as const

/** Contents of a token whose signature was not verified. */
export interface UnverifiedToken {
  readonly text: string
  readonly algorithm: string
  readonly kid: string
  readonly issuer: string
}

/**
 * Parses a compact JWS as far as needed to find the key that verifies it. Null for a text that is
 * too large or too deeply nested, or that lacks `alg`, `kid` or `iss`. Other keys in the header
 * (`jwk`, `jku`, `x5c`, `x5u`) are ignored.
 */
export function parseUnverifiedToken(text: string): UnverifiedToken | null {
  // @guard forged-tokens--size
  if (isTokenTooLong(text)) return null
  const [head, body, signature, ...more] = text.split('.', 4)
  if (head === undefined || body === undefined || !signature || more.length > 0) return null
  const algorithm = textMember(objectIn(head), 'alg')
  const kid = textMember(objectIn(head), 'kid')
  const issuer = textMember(objectIn(body), 'iss')
  if (algorithm === null || kid === null || issuer === null) return null
  return { text, algorithm, kid, issuer }
}

/** The claims of a token that can be parsed; its signature is not verified. */
export function readUnverifiedClaims({ text }: Pick<UnverifiedToken, 'text'>): JsonObject {
  return objectIn(text.split('.', 2)[1] ?? '') ?? {}
}

export function isTokenTooLong(text: string): boolean {
  return text.length > unverifiedTokenLimits.charactersMax
}

function objectIn(base64url: string): JsonObject | null {
  const text = Buffer.from(base64url, 'base64url').toString('utf8')
  // Checks the depth before parsing, so that no parser processes a deeply nested token.
  // @guard forged-tokens--depth
  if (jsonDepth(text) > unverifiedTokenLimits.depthMax) return null
  try {
    const value = JSON.parse(text) as Json
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

function textMember(object: JsonObject | null, name: string): string | null {
  if (object === null || !Object.hasOwn(object, name)) return null
  const value = object[name]
  return typeof value === 'string' && value !== '' ? value : null
}

const BEARER = 'bearer '

/** The tokens of `Authorization: Bearer` headers in their order, up to the maximum. */
export function parseBearerTokens(headers: readonly string[]): readonly string[] {
  return headers
    .filter((value) => value.slice(0, BEARER.length).toLowerCase() === BEARER)
    .map((value) => value.slice(BEARER.length).trim())
    .filter((token) => token !== '')
    .slice(0, unverifiedTokenLimits.candidatesMax)
}
