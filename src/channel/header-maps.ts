import type { ChannelMessage } from './frame.ts'

/**
 * Headers with several values. The read functions return null for a malformed header and an empty
 * value for a missing header.
 */

const ENTRIES_MAX = 128
const ENTRY_BYTES_MAX = 8192

const utf8 = new TextDecoder('utf-8')
const encoder = new TextEncoder()

/**
 * Reads values that follow their count and their lengths, and checks every length against the
 * remaining bytes.
 */
class Parts {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  number(): number | null {
    if (this.#at + 4 > this.#bytes.length) return null
    const value = this.#view.getUint32(this.#at, true)
    this.#at += 4
    return value
  }

  counted(): Uint8Array | null {
    const length = this.number()
    if (length === null || length > ENTRY_BYTES_MAX) return null
    if (this.#at + length > this.#bytes.length) return null
    const value = this.#bytes.subarray(this.#at, this.#at + length)
    this.#at += length
    return value
  }
}

/** Null if the header is malformed; [] if it is absent. */
export function readTextList(headers: ChannelMessage['headers'], key: number): string[] | null {
  const bytes = headers.get(key)
  if (bytes === undefined || bytes.length === 0) return []
  const parts = new Parts(bytes)
  const count = parts.number()
  if (count === null || count > ENTRIES_MAX) return null
  const texts: string[] = []
  for (let at = 0; at < count; at += 1) {
    const text = parts.counted()
    if (text === null) return null
    texts.push(utf8.decode(text))
  }
  return texts
}

/** Null if the header is malformed; an empty map if it is absent. */
export function readBytesMap(
  headers: ChannelMessage['headers'],
  key: number,
): Map<number, Uint8Array> | null {
  const bytes = headers.get(key)
  const map = new Map<number, Uint8Array>()
  if (bytes === undefined || bytes.length === 0) return map
  const parts = new Parts(bytes)
  const count = parts.number()
  if (count === null || count > ENTRIES_MAX) return null
  for (let at = 0; at < count; at += 1) {
    const [name, value] = [parts.number(), parts.counted()]
    if (name === null || value === null) return null
    map.set(name, value)
  }
  return map
}

/** Encodes a header whose value is a map from numbers to bytes. */
export function encodeBytesMap(map: ReadonlyMap<number, Uint8Array>): Uint8Array {
  const parts = [numberBytes(map.size)]
  for (const [key, value] of map) parts.push(numberBytes(key), numberBytes(value.length), value)
  return Buffer.concat(parts)
}

export function encodeTextMap(map: Readonly<Record<string, string>>): Uint8Array {
  const entries = Object.entries(map)
  const parts = [numberBytes(entries.length)]
  for (const text of entries.flat()) {
    const bytes = encoder.encode(text)
    parts.push(numberBytes(bytes.length), bytes)
  }
  return Buffer.concat(parts)
}

export function encodeTextList(texts: readonly string[]): Uint8Array {
  const parts = [numberBytes(texts.length)]
  for (const text of texts) {
    const bytes = encoder.encode(text)
    parts.push(numberBytes(bytes.length), bytes)
  }
  return Buffer.concat(parts)
}

function numberBytes(value: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, value, true)
  return bytes
}
