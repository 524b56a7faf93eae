import { randomBytes } from 'node:crypto'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The 16 bytes of a UUID in text form (RFC 9562); null when the string is not a UUID. */
export function parseUuid(text: string): Uint8Array | null {
  if (!UUID.test(text)) return null
  return Uint8Array.from(Buffer.from(text.replaceAll('-', ''), 'hex'))
}

export function formatUuid(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** The time in a UUIDv7 (RFC 9562, section 5.7), UTC ms; null for another version. */
export function uuidv7TimeMs(bytes: Uint8Array): number | null {
  if (bytes.length !== 16 || (bytes[6] ?? 0) >>> 4 !== 7) return null
  let time = 0
  for (let i = 0; i < 6; i += 1) time = time * 256 + (bytes[i] ?? 0)
  return time
}

/** A new UUIDv7 (RFC 9562, 5.7), 16 bytes; such ids sort by creation time, to the millisecond. */
export function newUuidv7(nowMs: number): Uint8Array {
  const bytes = Uint8Array.from(randomBytes(16))
  let rest = nowMs
  for (let i = 5; i >= 0; i -= 1) {
    bytes[i] = rest % 256
    rest = Math.floor(rest / 256)
  }
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  return bytes
}
