import type { ExternalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'
import { isObject } from '../../entities/check-fields.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import type { Clock } from '../../lib/clock.ts'
import { jsonDepth } from '../../lib/bounds/json-depth.ts'
import { type KeyFetcher, KeyFetchError } from './key-fetcher.ts'
import { verificationKeyFromJwk, type VerificationKey } from './verification-key.ts'
import type { ServiceLogger } from '../../ports/logger.ts'

interface KeySetLimits {
  readonly keySetKeysMax: number
  readonly keySetFreshMs: number
  readonly keySetStaleMsMax: number
  readonly keyFetchMsMin: number
  readonly keyFetchesPerMinuteMax: number
  readonly keySetsMax: number
}

/** Keys that were fetched together. A fetch that returns another text creates another object. */
export interface FetchedKeySet {
  readonly text: string
  readonly keys: readonly VerificationKey[]
}

interface Source {
  /**
   * URL from which the keys were fetched. If the signer's URL changes, the cache drops these keys.
   */
  readonly endpoint: string
  set: FetchedKeySet | null
  /** Time of the last successful fetch, monotonic ms. */
  fetchedAtMs: number
  triedAtMs: number
  fetching: Promise<void> | null
  isFailing: boolean
}

const DEPTH_MAX = 8
const MINUTE_MS = 60_000

/**
 * The keys of signers that publish them at a URL. Keys are cached, and fetched again when they are
 * older than `keySetFreshMs` or a token names an unknown key: one fetch at a time per signer, with
 * a minimum interval, and a limit per minute for all signers. Keys that the provider withdrew are
 * dropped with the next fetch. While the provider does not respond, known keys stay valid until
 * they are older than `keySetStaleMsMax`.
 */
export class SignerKeyCache {
  readonly #endpoint: Pick<KeyFetcher, 'fetch'>
  readonly #limits: KeySetLimits
  readonly #clock: Clock
  readonly #logger: ServiceLogger
  /** Keys by signer id, in order of their first use. */
  readonly #sources = new Map<string, Source>()
  #minuteEndsAtMs = 0
  #fetchesInMinute = 0

  constructor(
    endpoint: Pick<KeyFetcher, 'fetch'>,
    limits: KeySetLimits,
    { clock, logger }: { readonly clock: Clock; readonly logger: ServiceLogger },
  ) {
    this.#endpoint = endpoint
    this.#limits = limits
    this.#clock = clock
    this.#logger = logger
  }

  /** Cached keys of a signer; null if no cached keys are valid. */
  known(signer: ExternalJwtSigner): FetchedKeySet | null {
    const source = this.#sources.get(signer.id)
    if (source === undefined || source.endpoint !== signer.jwksEndpoint) return null
    const ageMs = this.#clock.monotonicMs() - source.fetchedAtMs
    return ageMs <= this.#limits.keySetStaleMsMax ? source.set : null
  }

  /**
   * The signer's keys, which are fetched if the cache lacks the key with this id. The result may
   * still lack this key; null if no keys are valid.
   */
  async holding(signer: ExternalJwtSigner, kid: string): Promise<FetchedKeySet | null> {
    const source = this.#sourceOf(signer)
    const ageMs = this.#clock.monotonicMs() - source.fetchedAtMs
    const isKnown = source.set?.keys.some((key) => key.kid === kid) === true
    if (isKnown && ageMs <= this.#limits.keySetStaleMsMax) {
      if (ageMs > this.#limits.keySetFreshMs) void this.#refresh(signer, source)
      return source.set
    }
    await this.#refresh(signer, source)
    return this.known(signer)
  }

  #sourceOf({ id, jwksEndpoint }: ExternalJwtSigner): Source {
    const known = this.#sources.get(id)
    if (known !== undefined && known.endpoint === jwksEndpoint) return known
    const source: Source = {
      endpoint: jwksEndpoint ?? '',
      set: null,
      fetchedAtMs: -Infinity,
      // Keeps the time of the last attempt, so that a change of the URL does not allow an
      // additional fetch.
      triedAtMs: known?.triedAtMs ?? -Infinity,
      fetching: null,
      isFailing: false,
    }
    this.#sources.delete(id)
    this.#sources.set(id, source)
    if (this.#sources.size > this.#limits.keySetsMax) {
      for (const [oldest] of this.#sources) {
        this.#sources.delete(oldest)
        break
      }
    }
    return source
  }

  /** Fetches the keys if the rate limits allow it. Concurrent callers share one fetch. */
  #refresh(signer: ExternalJwtSigner, source: Source): Promise<void> {
    if (source.fetching !== null) return source.fetching
    if (!this.#mayFetch(source)) return Promise.resolve()
    source.triedAtMs = this.#clock.monotonicMs()
    source.fetching = this.#fetch(signer, source).finally(() => {
      source.fetching = null
    })
    return source.fetching
  }

  #mayFetch({ triedAtMs }: Source): boolean {
    const nowMs = this.#clock.monotonicMs()
    // @guard signer-keys--rate
    if (nowMs - triedAtMs < this.#limits.keyFetchMsMin) return false
    if (nowMs >= this.#minuteEndsAtMs) {
      this.#minuteEndsAtMs = nowMs + MINUTE_MS
      this.#fetchesInMinute = 0
    }
    if (this.#fetchesInMinute >= this.#limits.keyFetchesPerMinuteMax) return false
    this.#fetchesInMinute += 1
    return true
  }

  async #fetch(signer: ExternalJwtSigner, source: Source): Promise<void> {
    try {
      const text = await this.#endpoint.fetch(source.endpoint)
      if (text !== source.set?.text)
        source.set = parseFetchedKeySet(text, this.#limits.keySetKeysMax)
      source.fetchedAtMs = this.#clock.monotonicMs()
      source.isFailing = false
    } catch (error) {
      // Logs only the first of consecutive failures, because clients could otherwise fill the log
      // by sending tokens.
      if (!source.isFailing) {
        const reason = error instanceof KeyFetchError ? error.message : 'the keys cannot be read'
        const fields = { signer: signer.id, reason }
        this.#logger.warn(fields, `cannot fetch the keys of the external JWT signer ${signer.id}`)
      }
      source.isFailing = true
    }
  }
}

/**
 * @throws {KeyFetchError} if the text is not a JWK set, is nested too deep, or has too many keys.
 */
export function parseFetchedKeySet(text: string, keysMax: number): FetchedKeySet {
  const document = parsed(text)
  const members = isObject(document) ? document['keys'] : null
  if (!Array.isArray(members)) throw new KeyFetchError('response is not a JWK set')
  if (members.length > keysMax) throw new KeyFetchError(`it has more than ${keysMax} keys`)
  return {
    text,
    keys: (members as readonly Json[]).map(verificationKeyFromJwk).filter((key) => key !== null),
  }
}

function parsed(text: string): Json {
  if (jsonDepth(text) > DEPTH_MAX) throw new KeyFetchError('response nested too deep')
  try {
    return JSON.parse(text) as Json
  } catch (error) {
    throw new KeyFetchError('response is not JSON', { cause: error })
  }
}
