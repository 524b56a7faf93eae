/**
 * Typed values in OpenZiti's boltz. Source: ziti 804f55abb,
 * controller/storage/boltz/typed_bucket.go:35-587.
 */
import { Buffer } from 'node:buffer'

/**
 * A decoded value with its type; `unknown` if the bytes are not valid for their type, or the type
 * is unknown.
 */
export type TypedValue =
  | { readonly type: 'boolean'; readonly value: boolean }
  | { readonly type: 'int32'; readonly value: number }
  | { readonly type: 'int64'; readonly value: bigint }
  | { readonly type: 'float64'; readonly value: number }
  | { readonly type: 'text'; readonly value: string }
  /** UTC ms; null for Go's zero time, which means unset. */
  | { readonly type: 'time'; readonly value: number | null }
  | { readonly type: 'nil' }
  | { readonly type: 'unknown' }

const typeBytes = { boolean: 1, int32: 2, int64: 3, float64: 4, text: 5, time: 6, nil: 7 } as const
export const TEXT_BYTE = typeBytes.text
export const INT32_BYTE = typeBytes.int32

const unknown: TypedValue = { type: 'unknown' }
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
/** Seconds from the start of year 1, Go's zero time, to 1970. */
const UNIX_SECONDS = 62_135_596_800n
const TIME_BYTES = 15
/** Size of a time in version 2 of Go's format, which adds the seconds of the time zone. */
const TIME_BYTES_2 = 16
/** Last millisecond of the year 9999, UTC ms. */
const TIME_MS_MAX = 253_402_300_799_999

export function decodeTypedValue(bytes: Uint8Array): TypedValue {
  const [first] = bytes
  if (first === undefined) return { type: 'nil' }
  const rest = Buffer.from(bytes.buffer, bytes.byteOffset + 1, bytes.length - 1)
  switch (first) {
    case typeBytes.boolean:
      return rest.length === 1 ? { type: 'boolean', value: rest[0] === 1 } : unknown
    case typeBytes.int32:
      return rest.length === 4 ? { type: 'int32', value: rest.readInt32LE() } : unknown
    case typeBytes.int64:
      return rest.length === 8 ? { type: 'int64', value: rest.readBigInt64LE() } : unknown
    case typeBytes.float64:
      return rest.length === 8 ? { type: 'float64', value: rest.readDoubleLE() } : unknown
    case typeBytes.text: {
      const value = decodeUtf8(rest)
      return value === null ? unknown : { type: 'text', value }
    }
    case typeBytes.time:
      return decodeTime(rest)
    case typeBytes.nil:
      return { type: 'nil' }
    default:
      return unknown
  }
}

/** Decodes UTF-8; null for invalid bytes. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}

/**
 * Decodes Go's binary form of a time: version, seconds, nanoseconds, minutes of the time zone.
 */
function decodeTime(bytes: Buffer): TypedValue {
  const version = bytes[0]
  const isWhole =
    (version === 1 && bytes.length === TIME_BYTES) ||
    (version === 2 && bytes.length === TIME_BYTES_2)
  if (!isWhole) return unknown
  const seconds = bytes.readBigInt64BE(1)
  const nanoseconds = bytes.readInt32BE(9)
  if (seconds === 0n && nanoseconds === 0) return { type: 'time', value: null }
  const ms = Number(seconds - UNIX_SECONDS) * 1000 + Math.floor(nanoseconds / 1e6)
  const isUsable = ms >= 0 && ms <= TIME_MS_MAX && nanoseconds >= 0 && nanoseconds < 1e9
  return isUsable ? { type: 'time', value: ms } : unknown
}
