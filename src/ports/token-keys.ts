/** One version of a key that the controllers share. */
export interface TokenKey {
  readonly version: number
  /** 32 random bytes. */
  readonly secret: Uint8Array
  /**
   * Log time from which on controllers no longer accept this version, UTC ms; null for the current
   * version, which signs.
   */
  readonly overlapEndsAtMs: number | null
  /** True if a controller that knew the key has been removed. */
  readonly isExposed: boolean
}

/**
 * The keys that sign session tokens and encrypt second factors, as this controller has them now.
 */
export interface TokenKeys {
  /**
   * Versions in ascending order. Returns the same array until the keys change. The array is empty
   * before the state has keys. It lacks the current version if this controller cannot decrypt that
   * version.
   */
  clusterKeys(): readonly TokenKey[]
  /**
   * Keys that encrypt second factors: all versions in use; like `clusterKeys` in other respects.
   */
  factorKeys(): readonly TokenKey[]
  /** Loads the keys of the applied state. */
  refresh(): Promise<void>
}
