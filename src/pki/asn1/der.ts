/** Tags of DER (X.690), each with its class and whether it is constructed. */
export const derTag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  numericString: 0x12,
  printableString: 0x13,
  teletexString: 0x14,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  visibleString: 0x1a,
  universalString: 0x1c,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const

/**
 * Context-specific tag `[number]`; constructed if the tag is explicit or the value contains other
 * values.
 */
export function contextTag(number: number, isConstructed = true): number {
  return 0x80 | (isConstructed ? 0x20 : 0) | number
}

/**
 * An object identifier, as the hex string of its DER contents, so that it can be compared and used
 * as a map key.
 */
export type Oid = string

/**
 * The bytes are not valid DER of the expected type. The message is for logs and never quotes the
 * bytes.
 */
export class DerError extends Error {
  override readonly name = 'DerError'
}

/** One DER value; `contents` and `whole` are views of the parsed bytes. */
export interface DerValue {
  readonly tag: number
  readonly contents: Buffer
  /** Bytes of the value, including its tag and length. */
  readonly whole: Buffer
}

/**
 * Maximum number of length bytes of one value. Three are enough for the longest value that this
 * program reads.
 */
const LENGTH_BYTES_MAX = 3

/**
 * Reads consecutive DER values strictly: only definite lengths in their shortest form and one-byte
 * tags, so that the tag and the length of a value can be encoded in only one way. The reader copies
 * nothing and does not recurse.
 */
export class DerReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  /**
   * @throws {DerError} when there is no further value, or the next value is truncated or has an
   * unsupported tag or length.
   */
  next(): DerValue {
    const from = this.#at
    const tag = this.#byte()
    if ((tag & 0x1f) === 0x1f) throw new DerError('a tag of several bytes')
    const length = this.#length()
    const start = this.#at
    if (length > this.#bytes.length - start) throw new DerError('a value is cut off')
    this.#at = start + length
    return {
      tag,
      contents: this.#bytes.subarray(start, this.#at),
      whole: this.#bytes.subarray(from, this.#at),
    }
  }

  /** @throws {DerError} also when the next value has another tag. */
  take(tag: number): DerValue {
    const value = this.next()
    if (value.tag !== tag) throw new DerError(`tag ${value.tag} where ${tag} is expected`)
    return value
  }

  /** @returns null without advancing when the next value has another tag or there is none. */
  optional(tag: number): DerValue | null {
    return !this.isAtEnd && this.#bytes[this.#at] === tag ? this.next() : null
  }

  /**
   * Checks that nothing follows.
   * @throws {DerError} when bytes remain.
   */
  end(): void {
    if (!this.isAtEnd) throw new DerError('something follows where nothing is expected')
  }

  #byte(): number {
    const byte = this.#bytes[this.#at]
    if (byte === undefined) throw new DerError('a value is cut off')
    this.#at += 1
    return byte
  }

  #length(): number {
    const first = this.#byte()
    if (first < 0x80) return first
    const count = first & 0x7f
    if (count === 0 || count > LENGTH_BYTES_MAX) throw new DerError('a length out of range')
    let length = 0
    for (let at = 0; at < count; at += 1) length = length * 0x100 + this.#byte()
    if (length < 0x80 || length < 0x100 ** (count - 1)) {
      throw new DerError('a length that is not in its shortest form')
    }
    return length
  }
}

/**
 * Reads the only value in these bytes.
 * @throws {DerError} also when more bytes follow the value.
 */
export function readOnlyDerValue(bytes: Uint8Array, tag: number): DerValue {
  const reader = new DerReader(bytes)
  const value = reader.take(tag)
  reader.end()
  return value
}

/**
 * The values directly inside a constructed value.
 * @throws {DerError} also when there are more than `valuesMax`.
 */
export function readInnerDerValues(value: DerValue, valuesMax: number): DerValue[] {
  const reader = new DerReader(value.contents)
  const values: DerValue[] = []
  while (!reader.isAtEnd) {
    if (values.length === valuesMax) throw new DerError(`more than ${valuesMax} values`)
    values.push(reader.next())
  }
  return values
}

/**
 * A non-negative integer.
 * @throws {DerError} also when it is negative or does not fit 32 bits.
 */
export function readDerSmallInteger({ contents }: DerValue): number {
  const [first = 0x80, second = 0] = contents
  if (first >= 0x80 || contents.length > 5) throw new DerError('an integer out of range')
  if (contents.length > 1 && first === 0 && second < 0x80) {
    throw new DerError('an integer that is not in its shortest form')
  }
  const number = contents.readUIntBE(0, contents.length)
  if (number > 0xffff_ffff) throw new DerError('an integer out of range')
  return number
}

/** @throws {DerError} when the contents encode neither true nor false. */
export function readDerBoolean({ contents }: DerValue): boolean {
  const [byte] = contents
  if (contents.length !== 1 || (byte !== 0 && byte !== 0xff)) {
    throw new DerError('a boolean that is neither true nor false')
  }
  return byte === 0xff
}

/**
 * The object identifier of a value. Never throws: for another tag it returns '', which equals no
 * identifier.
 */
export function readDerOid({ tag, contents }: DerValue): Oid {
  return tag === derTag.objectIdentifier ? contents.toString('hex') : ''
}

/**
 * The bytes of a BIT STRING without unused bits.
 * @throws {DerError}
 */
export function readBitStringBytes({ contents }: DerValue): Buffer {
  if (contents[0] !== 0) throw new DerError('a bit string that does not end with a whole byte')
  return contents.subarray(1)
}

/** A value to encode: DER bytes, an object identifier, or a tag with its contents. */
export type DerTree = Uint8Array | Oid | DerNode
type Tagged<Content> = readonly [tag: number, ...contents: readonly Content[]]
interface DerNode extends Tagged<DerTree> {}

/** Encodes one value with tag, length and contents; each byte is copied only once. */
export function encodeTagged(tag: number, ...contents: readonly DerTree[]): Buffer {
  const pieces: Uint8Array[] = []
  const length = gather([tag, ...contents], pieces)
  return Buffer.concat(pieces, length)
}

/**
 * Appends the encoded pieces of a value to `pieces`.
 * @returns the total number of bytes.
 */
function gather([tag, ...contents]: Tagged<DerTree>, pieces: Uint8Array[]): number {
  // Reserves an element of the list for tag and length, because they can be encoded only once the
  // length of the contents is known.
  const at = pieces.push(nothing) - 1
  let length = 0
  for (const part of contents) {
    if (part instanceof Uint8Array) {
      pieces.push(part)
      length += part.length
      continue
    }
    const isOid = typeof part === 'string'
    length += gather(isOid ? [derTag.objectIdentifier, Buffer.from(part, 'hex')] : part, pieces)
  }
  const head = Uint8Array.from(headOf(tag, length))
  pieces[at] = head
  return head.length + length
}

const nothing = Uint8Array.of()

/**
 * Tag and length bytes. A length below 128 takes one byte. A greater length takes one to three
 * bytes, after a byte that contains their number.
 */
function headOf(tag: number, length: number): readonly number[] {
  if (length < 0x80) return [tag, length]
  if (length < 0x100) return [tag, 0x81, length]
  if (length < 0x1_0000) return [tag, 0x82, length >> 8, length & 0xff]
  return [tag, 0x83, length >> 16, (length >> 8) & 0xff, length & 0xff]
}

/**
 * A non-negative INTEGER in its shortest form.
 * @param bytes big-endian.
 */
export function encodeUnsignedInteger(bytes: Uint8Array): DerTree {
  let from = 0
  while (from < bytes.length - 1 && bytes[from] === 0) from += 1
  const magnitude = bytes.subarray(from)
  const isHigh = (magnitude[0] ?? 0) >= 0x80
  return [derTag.integer, isHigh ? Uint8Array.of(0) : nothing, magnitude]
}
