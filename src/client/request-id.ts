/**
 * How far ahead of the clock the time in a request ID is, if the client sends a write again after
 * `cluster reset-log-time`. After this command, controllers refuse IDs whose time is up to five
 * minutes after the reset, because they no longer know whether such a write was executed before.
 * They accept IDs that are up to five minutes ahead, and before the reset no client used an ID with
 * such a late time. The two seconds allow for a client clock that is ahead.
 */
export const REQUEST_ID_OFFSET_AFTER_RESET_MS = 5 * 60_000 - 2_000

/**
 * Creates a request ID, a UUIDv7 (RFC 9562, 5.7). Controllers execute a write once, no matter how
 * often they receive it with the same ID.
 * @param random 16 random bytes; this function overwrites them.
 */
export function newRequestId(nowMs: number, random: Uint8Array): string {
  for (let at = 0; at < 6; at += 1) random[at] = Math.floor(nowMs / 2 ** (8 * (5 - at))) % 256
  random[6] = 0x70 | ((random[6] ?? 0) & 0x0f)
  random[8] = 0x80 | ((random[8] ?? 0) & 0x3f)
  const hex = Array.from(random, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
