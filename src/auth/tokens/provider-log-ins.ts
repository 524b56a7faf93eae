import type { ExternalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ServiceLogger } from '../../ports/logger.ts'
import { type KeyFetcher, KeyFetchError } from './key-fetcher.ts'
import {
  fetchProviderDocument,
  parseFetchedJsonObject,
  type ProviderDocument,
} from './provider-discovery.ts'

/**
 * An authorization code of an identity provider, and the values needed to redeem it (RFC 6749,
 * 4.1.3; RFC 7636).
 */
export interface ProviderAuthorizationCode {
  readonly code: string
  readonly codeVerifier: string
  readonly redirectUri: string
  /** Issuer in the redirect with the code (RFC 9207); undefined: the redirect names none. */
  readonly issuer?: string | undefined
}

interface ProviderLogInsDeps {
  readonly keyEndpoint: KeyFetcher
  readonly clock: Clock
  readonly logger: ServiceLogger
}

interface Known {
  readonly revision: number
  readonly found: Promise<ProviderDocument | null>
  readonly endsAtMs: number
}

/** How long a discovery document is cached; providers change it rarely. */
const FRESH_MS = 15 * 60_000
const SIGNERS_MAX = 256

/**
 * Log-ins of console users at identity providers. The console may send requests only to
 * controllers, so a controller reads the provider's addresses and redeems the code. The controller
 * contacts only providers of signers, under the rules for JWKS endpoints of signers.
 */
export class ProviderLogIns {
  readonly #deps: ProviderLogInsDeps
  /** Discovery documents by signer id; the one that was fetched first is evicted first. */
  readonly #known = new Map<string, Known>()

  constructor(deps: ProviderLogInsDeps) {
    this.#deps = deps
  }

  /**
   * The address at which a browser begins the log-in; null if the provider has none or does not
   * respond.
   */
  async authorizationEndpoint(signer: ExternalJwtSigner): Promise<string | null> {
    return (await this.#document(signer))?.authorizationEndpoint ?? null
  }

  /**
   * The token for a code; null if another issuer has issued the code, or the provider does not
   * return the token that the signer requires.
   */
  async redeem(
    signer: ExternalJwtSigner,
    { code, codeVerifier, redirectUri, issuer }: ProviderAuthorizationCode,
  ): Promise<string | null> {
    const document = await this.#document(signer)
    if (document === null || document.tokenEndpoint === null) return null
    // Sends no code of another issuer: a malicious provider could redirect the browser to the
    // log-in page of another provider, and use the code that this page issues.
    // @guard provider-log-in--other-issuer
    if (issuer === undefined ? document.namesIssuer : issuer !== document.issuer) return null
    const form = {
      grant_type: 'authorization_code',
      client_id: signer.clientId,
      code,
      code_verifier: codeVerifier,
      redirect_uri: redirectUri,
    }
    try {
      const { tokenEndpoint } = document
      const answer = parseFetchedJsonObject(await this.#deps.keyEndpoint.fetch(tokenEndpoint, form))
      const token = answer[signer.targetToken === 'ID' ? 'id_token' : 'access_token']
      return typeof token === 'string' && token !== '' ? token : null
    } catch (error) {
      if (!(error instanceof KeyFetchError)) throw error
      return null
    }
  }

  /**
   * The discovery document of a signer's provider, cached. Concurrent callers share one fetch, and
   * a failure is cached for some seconds.
   */
  async #document(signer: ExternalJwtSigner): Promise<ProviderDocument | null> {
    const { id, revision } = signer
    const nowMs = this.#deps.clock.monotonicMs()
    const known = this.#known.get(id)
    if (known !== undefined && known.revision === revision && nowMs < known.endsAtMs) {
      return await known.found
    }
    const found = this.#fetch(signer)
    this.#known.delete(id)
    this.#known.set(id, { revision, found, endsAtMs: nowMs + FRESH_MS })
    const [oldest] = this.#known.keys()
    if (this.#known.size > SIGNERS_MAX && oldest !== undefined) this.#known.delete(oldest)
    const document = await found
    if (document === null) {
      this.#known.set(id, { revision, found, endsAtMs: nowMs + FAILED_MS })
    }
    return document
  }

  async #fetch(signer: ExternalJwtSigner): Promise<ProviderDocument | null> {
    const { id, issuer, externalAuthUrl } = signer
    try {
      return await fetchProviderDocument(this.#deps.keyEndpoint, externalAuthUrl, issuer)
    } catch (error) {
      if (!(error instanceof KeyFetchError)) throw error
      const fields = { signer: id, reason: error.message }
      this.#deps.logger.warn(fields, `cannot begin log-ins at the provider of the signer ${id}`)
      return null
    }
  }
}

/** Time until the next attempt after a failure; also limits how often a failure is logged. */
const FAILED_MS = 10_000
