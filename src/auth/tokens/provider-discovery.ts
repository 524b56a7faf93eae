import { isObject } from '../../entities/check.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { jsonDepth } from '../../lib/bounds/json-depth.ts'
import { type KeyEndpoint, KeyFetchError } from './key-endpoint.ts'
import { keySetOf } from './key-sets.ts'

const DEPTH_MAX = 8
const CHARACTERS_MAX = 2048
const SCOPES_MAX = 64

/** The description that a provider publishes of itself (OpenID Connect Discovery 1.0). */
export interface DiscoveredProvider {
  readonly issuer: string
  readonly jwksUri: string
  /** Null: the provider has no endpoint at which a browser can log in. */
  readonly authorizationEndpoint: string | null
  readonly scopes: readonly string[]
  /** Ids of the usable keys at `jwksUri`; null: they could not be fetched. */
  readonly keyIds: readonly string[] | null
  readonly keysFault: string | null
}

/** The address of the discovery document of an issuer. */
export function discoveryAddress(issuer: string): string {
  return `${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`
}

/**
 * Fetches the discovery document of an issuer, and the keys that it names. Both addresses are
 * judged by the rules for keys of signers, because the provider chooses the second one.
 * @throws {KeyFetchError} with the reason why the document is of no use.
 */
export async function discoverProvider(
  endpoint: Pick<KeyEndpoint, 'fetch'>,
  issuer: string,
  keysMax: number,
): Promise<DiscoveredProvider> {
  const document = parsedDocument(await endpoint.fetch(discoveryAddress(issuer)))
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
  const found = {
    issuer,
    jwksUri,
    authorizationEndpoint: textOf(document['authorization_endpoint']),
    scopes: Array.isArray(scopes)
      ? (scopes as readonly Json[])
          .map(textOf)
          .filter((one) => one !== null)
          .slice(0, SCOPES_MAX)
      : [],
  }
  try {
    const { keys } = keySetOf(await endpoint.fetch(jwksUri), keysMax)
    return { ...found, keyIds: keys.map(({ kid }) => kid), keysFault: null }
  } catch (error) {
    if (!(error instanceof KeyFetchError)) throw error
    return { ...found, keyIds: null, keysFault: error.message }
  }
}

function parsedDocument(text: string): JsonObject {
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
