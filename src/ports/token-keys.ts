/** One version of a key that the controllers share. */
export interface TokenKey {
  readonly version: number
  /** 32 random bytes. */
  readonly secret: Uint8Array
  /**
   * Log time at which this version is no longer accepted, UTC ms; null for the current version,
   * which signs.
   */
  readonly overlapEndsAtMs: number | null
  /** True: a controller that knew the key has been removed. */
  readonly isExposed: boolean
}

/**
 * The keys that sign session tokens and encrypt second factors, as this controller has them now.
 */
export interface TokenKeys {
  /**
   * Versions in ascending order. The same array is returned until something changes. Empty before
   * the state has keys, and without a current version if this controller cannot decrypt it.
   */
  clusterKeys(): readonly TokenKey[]
  /** Keys that encrypt second factors: all versions in use, like `clusterKeys`. */
  factorKeys(): readonly TokenKey[]
  /** Loads the keys of the applied state. */
  refresh(): Promise<void>
}
