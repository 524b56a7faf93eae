const SECOND_MS = 1000
const MINUTE_MS = 60_000

/** Limits of tokens of identity providers (external JWT signers) and of fetching their keys. */
export const externalTokenLimits = {
  /**
   * Accepted clock difference of an identity provider, for the claims `nbf`, `exp` and `iat`.
   */
  tokenClockSkewMs: 30 * SECOND_MS,
  /**
   * Tokens that are verified at a time, shared by callers; beyond the total or its share: 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  tokenChecksMax: 256,
  /**
   * Verified tokens that are stored, so that the next request with one costs no signature check.
   */
  verifiedTokensMax: 16_384,
  /** Maximum time that one is stored. */
  verifiedTokenMsMax: 10 * MINUTE_MS,
  /** Fetching the keys of a signer, from resolving its name to the end of the answer. */
  keyFetchMsMax: 5 * SECOND_MS,
  /**
   * Names resolved for that at a time, each on one thread of libuv; beyond: the known keys remain.
   */
  keyLookupsMax: 2,
  /** Minimum time between two fetches for one signer, whatever its tokens name. */
  keyFetchMsMin: SECOND_MS,
  /** Fetches for all signers. */
  keyFetchesPerMinuteMax: 240,
  /** Bytes of a key set; a larger one is refused. */
  keySetBytesMax: 256 * 1024,
  /** Keys of a key set; a larger one is refused. */
  keySetKeysMax: 100,
  /** Keys that are older are fetched again when they are used. */
  keySetFreshMs: 15 * MINUTE_MS,
  /** Keys remain valid for this long while their provider does not answer. */
  keySetStaleMsMax: 24 * 60 * MINUTE_MS,
  /** Signers whose keys are stored. */
  keySetsMax: 256,
}

export type ExternalTokenLimits = Readonly<typeof externalTokenLimits>
