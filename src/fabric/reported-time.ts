const TIME_MS_MAX = 8_640_000_000_000_000n

/**
 * UTC ms reported by a router; null if the number is not a valid time, or is 0 for an unset field.
 */
export function reportedTimeMs(ms: bigint): number | null {
  // @guard reports-of-a-router--time
  return ms > 0n && ms <= TIME_MS_MAX ? Number(ms) : null
}
