/** Spans of time that keys of a router's configuration have in common. */
export const MINUTE_MS = 60_000
export const DAY_MS = 24 * 60 * MINUTE_MS
export const MINUTES_MAX_MS = 60 * MINUTE_MS
