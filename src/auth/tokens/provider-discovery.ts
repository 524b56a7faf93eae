import { isObject } from '../../entities/check-fields.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { jsonDepth } from '../../lib/bounds/json-depth.ts'
import { type KeyFetcher, KeyFetchError } from './key-fetcher.ts'
import { parseFetchedKeySet } from './signer-key-cache.ts'

const DEPTH_MAX = 8
const CHARACTERS_MAX = 2048
const SCOPES_MAX = 64

/** The discovery document of an identity provider (OpenID Connect Discovery 1.0). */
export interface ProviderDocument {
  readonly issuer: string
  readonly jwksUri: string
  /** Null if the provider names no such endpoint with an `https` URL. */
  readonly authorizationEndpoint: string | null
  readonly tokenEndpoint: string | null
  readonly scopes: readonly string[]
  /** Whether the provider adds its issuer to the redirect with a code, as `iss` (RFC 9207). */
  readonly namesIssuer: boolean
}

export interface DiscoveredProvider extends ProviderDocument {
  /** Ids of the usable keys at `jwksUri`; null if the keys could not be fetched. */
  readonly keyIds: readonly string[] | null
  readonly keysFault: string | null
}

/**
 * Fetches the discovery document of an issuer.
 * @param at the base URL of the document; usually the issuer itself.
 * @throws {KeyFetchError} with the reason why the document cannot be used.
 */
export async function fetchProviderDocument(
  endpoint: Pick<KeyFetcher, 'fetch'>,
  at: string,
  issuer: string,
): Promise<ProviderDocument> {
  const address = `${at.replace(/\/+$/, '')}/.well-known/openid-configuration`
  const document = parseFetchedJsonObject(await endpoint.fetch(address))
  const published = textOf(document['issuer'])
  // @guard signer-set-up--issuer
  if (published !== issuer) {
    throw new KeyFetchError(
      published === null
        ? 'its document has no issuer'
        : `its document is about the issuer ${published.slice(0, 256)}`,
    )
  }
  const jwksUri = textOf(document['jwks_uri'])
  if (jwksUri === null) throw new KeyFetchError('its document has no jwks_uri')
  const scopes = document['scopes_supported']
  return {
    issuer,
    jwksUri,
    authorizationEndpoint: httpsOf(document['authorization_endpoint']),
    tokenEndpoint: httpsOf(document['token_endpoint']),
    scopes: Array.isArray(scopes)
      ? (scopes as readonly Json[])
          .map(textOf)
          .filter((one) => one !== null)
          .slice(0, SCOPES_MAX)
      : [],
    namesIssuer: document['authorization_response_iss_parameter_supported'] === true,
  }
}

/**
 * Fetches the discovery document of an issuer, and the keys at the address that the document
 * contains. The rules for JWKS endpoints of signers also apply to that address, because the
 * provider chooses it.
 * @throws {KeyFetchError} in the same cases as `fetchProviderDocument`.
 */
export async function discoverProvider(
  endpoint: Pick<KeyFetcher, 'fetch'>,
  issuer: string,
  keysMax: number,
): Promise<DiscoveredProvider> {
  const found = await fetchProviderDocument(endpoint, issuer, issuer)
  try {
    const { keys } = parseFetchedKeySet(await endpoint.fetch(found.jwksUri), keysMax)
    return { ...found, keyIds: keys.map(({ kid }) => kid), keysFault: null }
  } catch (error) {
    if (!(error instanceof KeyFetchError)) throw error
    return { ...found, keyIds: null, keysFault: error.message }
  }
}

/** @throws {KeyFetchError} if the text is not a JSON object. */
export function parseFetchedJsonObject(text: string): JsonObject {
  if (jsonDepth(text) > DEPTH_MAX) throw new KeyFetchError('response nested too deep')
  let document: Json
  try {
    document = JSON.parse(text) as Json
  } catch (error) {
    throw new KeyFetchError('response is not JSON', { cause: error })
  }
  if (!isObject(document)) throw new KeyFetchError('response is no discovery document')
  return document
}

function textOf(value: Json | undefined): string | null {
  return typeof value === 'string' && value !== '' && value.length <= CHARACTERS_MAX ? value : null
}

/**
 * The value, if it is an `https` URL; otherwise null. A browser opens the URL, and another scheme
 * could run a script in the console.
 */
function httpsOf(value: Json | undefined): string | null {
  const text = textOf(value)
  // @guard provider-log-in--scheme
  return text !== null && URL.parse(text)?.protocol === 'https:' ? text : null
}
