/** Headers of a message by key; unknown keys are kept. A `Map` satisfies this interface. */
export interface ChannelHeaders {
  readonly size: number
  get(key: number): Uint8Array | undefined
  has(key: number): boolean
  /** Yields each header once. */
  [Symbol.iterator](): Iterator<[number, Uint8Array]>
}

/** Bytes of key and length before each value. */
export const HEADER_ENTRY_PREFIX_BYTES = 8

/** A view of a part of the bytes, as a `Uint8Array` even if the bytes are a `Buffer`. */
export function byteView(bytes: Uint8Array, from: number, to: number): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset + from, to - from)
}

/** Reads a little-endian integer at this offset. */
export function readInt32At(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16)
  return low | ((bytes[at + 3] ?? 0) << 24)
}

/** Headers as encoded in a frame; if a key occurs twice, its last value is used. */
export class HeaderView implements ChannelHeaders {
  readonly #bytes: Uint8Array
  readonly #from: number
  readonly #to: number
  /** Created when first needed: most readers need only two or three values. */
  #map: ReadonlyMap<number, Uint8Array> | null = null

  /** @param bytes that passed {@link headersFault}. */
  constructor(bytes: Uint8Array, from: number, to: number) {
    this.#bytes = bytes
    this.#from = from
    this.#to = to
  }

  /** All headers as encoded in the frame. */
  get block(): Uint8Array {
    return byteView(this.#bytes, this.#from, this.#to)
  }

  get blockBytes(): number {
    return this.#to - this.#from
  }

  get size(): number {
    return this.#entries().size
  }

  has(key: number): boolean {
    return this.#valueAt(key) !== -1
  }

  get(key: number): Uint8Array | undefined {
    const at = this.#valueAt(key)
    return at === -1 ? undefined : byteView(this.#bytes, at, at + readInt32At(this.#bytes, at - 4))
  }

  [Symbol.iterator](): Iterator<[number, Uint8Array]> {
    return this.#entries()[Symbol.iterator]()
  }

  /** @returns the offset of the value; -1 if the key is missing. */
  #valueAt(key: number): number {
    const bytes = this.#bytes
    let found = -1
    for (let at = this.#from; at < this.#to;) {
      if (readInt32At(bytes, at) === key) found = at + HEADER_ENTRY_PREFIX_BYTES
      at += HEADER_ENTRY_PREFIX_BYTES + readInt32At(bytes, at + 4)
    }
    return found
  }

  #entries(): ReadonlyMap<number, Uint8Array> {
    this.#map ??= entriesIn(this.#bytes, this.#from, this.#to)
    return this.#map
  }
}

function entriesIn(bytes: Uint8Array, from: number, to: number): Map<number, Uint8Array> {
  const entries = new Map<number, Uint8Array>()
  for (let at = from; at < to;) {
    const end = at + HEADER_ENTRY_PREFIX_BYTES + readInt32At(bytes, at + 4)
    entries.set(readInt32At(bytes, at), byteView(bytes, at + HEADER_ENTRY_PREFIX_BYTES, end))
    at = end
  }
  return entries
}

/**
 * Why the bytes are not valid headers, for example because they contain too many; null if they are
 * valid.
 */
export function headersFault(
  bytes: Uint8Array,
  from: number,
  to: number,
  headersMax: number,
): string | null {
  let entries = 0
  // Headers with the same key count as one. The set is created only if there are more than
  // `headersMax` entries, which well-behaved peers do not send.
  let keys: Set<number> | null = null
  for (let at = from; at < to;) {
    if (to - at < HEADER_ENTRY_PREFIX_BYTES) return 'a header that ends early'
    const length = readInt32At(bytes, at + 4)
    const valueAt = at + HEADER_ENTRY_PREFIX_BYTES
    if (length < 0 || length > to - valueAt) return `a header of ${length} bytes`
    if (entries >= headersMax) {
      keys ??= new Set(entriesIn(bytes, from, at).keys())
      if (keys.size >= headersMax) return 'too many headers'
      keys.add(readInt32At(bytes, at))
    }
    entries += 1
    at = valueAt + length
  }
  return null
}

/**
 * Bytes that may be stored longer than their message. A small value is copied, because a view would
 * keep up to 64 KiB of received data in memory.
 */
export function retainableBytes(view: Uint8Array): Uint8Array {
  return view.length * 2 >= view.buffer.byteLength ? view : new Uint8Array(view)
}
