/** One version of a key that the controllers share. */
export interface TokenKey {
  readonly version: number
  /** 32 random bytes. */
  readonly secret: Uint8Array
  /** Log time, UTC ms; null for the current version, which signs. */
  readonly overlapEndsAtMs: number | null
  /** True: a controller that knew it has been removed. */
  readonly isExposed: boolean
}

/**
 * The keys that sign session tokens and encrypt second factors, as this controller has them now.
 */
export interface TokenKeys {
  /**
   * Versions in ascending order; the same array until something changes. Empty before the state has
   * keys, and without a current version if this controller cannot decrypt it.
   */
  clusterKeys(): readonly TokenKey[]
  /** Keys that encrypt second factors, as `clusterKeys`: all versions in use. */
  factorKeys(): readonly TokenKey[]
  /** Loads the keys of the applied state. */
  refresh(): Promise<void>
}
