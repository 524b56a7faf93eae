import type { ChannelMessage } from './frame.ts'

/**
 * Encodes and decodes header values. Unless its comment says otherwise, a read function returns
 * null for a value that is missing or has the wrong size.
 */

type Headers = ChannelMessage['headers']

const utf8 = new TextDecoder('utf-8')
const encoder = new TextEncoder()

/** Maximum bytes of a capability mask; the known capabilities need far fewer. */
const MASK_BYTES_MAX = 32

export function encodeText(text: string): Uint8Array {
  return encoder.encode(text)
}

export function encodeFlag(flag: boolean): Uint8Array {
  return Uint8Array.of(flag ? 1 : 0)
}

/** Little endian. */
export function encodeInt32(value: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setInt32(0, value, true)
  return bytes
}

/** Little endian. */
export function encodeUint64(value: bigint): Uint8Array {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, value, true)
  return bytes
}

/** Encodes a bit set as a big-endian integer of minimal length, as capability masks require. */
export function encodeBitMask(bits: readonly number[]): Uint8Array {
  const mask = bits.reduce((sum, bit) => sum | (1n << BigInt(bit)), 0n)
  const hex = mask.toString(16)
  return Uint8Array.from(Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex'))
}

/** The bits that are set; none if the mask is longer than the maximum. */
export function readBitMask(headers: Headers, key: number): ReadonlySet<number> {
  const bits = new Set<number>()
  const value = headers.get(key)
  if (value === undefined || value.length > MASK_BYTES_MAX) return bits
  for (const [at, byte] of [...value].reverse().entries()) {
    for (let bit = 0; bit < 8; bit++) if ((byte & (1 << bit)) !== 0) bits.add(at * 8 + bit)
  }
  return bits
}

/** Null if the header is absent. */
export function readText(headers: Headers, key: number): string | null {
  const value = headers.get(key)
  return value === undefined ? null : utf8.decode(value)
}

/** False if the flag is missing. */
export function readFlag(headers: Headers, key: number): boolean {
  const value = headers.get(key)
  return value?.length === 1 && value[0] === 1
}

/** Null if the header is absent or does not have 4 bytes. */
export function readInt32(headers: Headers, key: number): number | null {
  const value = headers.get(key)
  if (value?.length !== 4) return null
  return new DataView(value.buffer, value.byteOffset).getInt32(0, true)
}

/** Null if the header is absent or does not have 8 bytes. */
export function readUint64(headers: Headers, key: number): bigint | null {
  const value = headers.get(key)
  if (value?.length !== 8) return null
  return new DataView(value.buffer, value.byteOffset).getBigUint64(0, true)
}
