export interface TokenKey {
  readonly version: number
  /** 32 random bytes. */
  readonly secret: Uint8Array
  /** Log time, UTC ms; null for the version in force, which signs. */
  readonly overlapEndsAtMs: number | null
  /** A controller that could open it has been removed. */
  readonly isExposed: boolean
}

/**
 * The keys that session tokens are signed by and second factors are encrypted by, as this
 * controller holds them now.
 */
export interface TokenKeys {
  /**
   * Versions ascending; the same array until something changes. Empty before the state has them,
   * and without one in force when this controller can not open it.
   */
  clusterKeys(): readonly TokenKey[]
  /**
   * Keys that second factors are encrypted by, as `clusterKeys`: all versions that any of
   * them is encrypted by.
   */
  factorKeys(): readonly TokenKey[]
  /** Takes over what the applied state says by now. */
  refresh(): Promise<void>
}
