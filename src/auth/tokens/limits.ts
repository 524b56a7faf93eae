const SECOND_MS = 1000
const MINUTE_MS = 60_000

/** Limits for tokens of identity providers (external JWT signers) and for fetching their keys. */
export const externalTokenLimits = {
  /**
   * Accepted clock difference of an identity provider, for the claims `nbf`, `exp` and `iat`.
   */
  tokenClockSkewMs: 30 * SECOND_MS,
  /**
   * Maximum tokens that are verified at the same time, shared fairly by callers; tokens of OIDC
   * sessions have separate limits of the same size. A caller that exceeds the total or its share
   * gets 429 SERVER_TOO_MANY_REQUESTS.
   */
  tokenChecksMax: 256,
  /**
   * Maximum cached verified tokens, and the same maximum for access tokens of OIDC sessions; a
   * further request with a cached token is accepted without another signature check.
   */
  verifiedTokensMax: 16_384,
  /** Maximum time that a verified token is cached. */
  verifiedTokenMsMax: 10 * MINUTE_MS,
  /**
   * Maximum time for one fetch of a signer's keys, or of the discovery document or tokens of its
   * provider, from resolving the host name to the end of the response.
   */
  keyFetchMsMax: 5 * SECOND_MS,
  /**
   * Maximum concurrent DNS lookups for fetches from identity providers, each in one thread of
   * libuv. Above the limit, a fetch fails, and known keys stay in use.
   */
  keyLookupsMax: 2,
  /** Minimum time between two fetches for one signer, even if tokens name unknown keys. */
  keyFetchMsMin: SECOND_MS,
  /** Maximum fetches per minute for all signers. */
  keyFetchesPerMinuteMax: 240,
  /**
   * Maximum bytes of a fetched key set, discovery document or token response; a larger one is
   * refused.
   */
  keySetBytesMax: 256 * 1024,
  /** Maximum keys of a key set; a larger key set is refused. */
  keySetKeysMax: 100,
  /** Keys older than this are fetched again at their next use. */
  keySetFreshMs: 15 * MINUTE_MS,
  /** Keys stay valid for this time while their provider does not respond. */
  keySetStaleMsMax: 24 * 60 * MINUTE_MS,
  /** Maximum signers whose keys are stored. */
  keySetsMax: 256,
}

export type ExternalTokenLimits = Readonly<typeof externalTokenLimits>
