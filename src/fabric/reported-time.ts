const TIME_MS_MAX = 8_640_000_000_000_000n

/** UTC ms as a router says it; null: not every number is a time, and 0 is none that it says. */
export function reportedTime(ms: bigint): number | null {
  // @guard reports-of-a-router--time
  return ms > 0n && ms <= TIME_MS_MAX ? Number(ms) : null
}
