/** The zero time of Go, which OpenZiti sends for "never". */
export const GO_ZERO_TIME = '0001-01-01T00:00:00.000Z'

/**
 * Formats a time as OpenZiti's API does.
 * @param atMs UTC ms; null: never, which gives {@link GO_ZERO_TIME}.
 */
export function formatTime(atMs: number | null): string {
  return atMs === null ? GO_ZERO_TIME : new Date(atMs).toISOString()
}

/** A UTC time with a precision of seconds: `2027-03-01T12:00:00Z`. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z')
}
