const MINUTE_MS = 60_000
export const DAY_MS = 24 * 60 * MINUTE_MS

/** The time that is `ms` after now, rounded up to a whole minute, in RFC 3339 format. */
export function expiryAfter(ms: number, nowMs = Date.now()): string {
  return new Date(Math.ceil((nowMs + ms) / MINUTE_MS) * MINUTE_MS).toISOString()
}
