import { assert } from '../../lib/assert.ts'

// Texts of which there are a million: those of the letters that ids are drawn from take six bits a
// letter, others are UTF-8. Each begins with its length: one byte, or four where it is long.

const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_'
const LETTER_BITS = 6
const BYTE_BITS = 8
const NO_LETTER = 0xff
const codes = new Uint8Array(128).fill(NO_LETTER)
for (let code = 0; code < LETTERS.length; code += 1) codes[LETTERS.charCodeAt(code)] = code

/** In the first byte: letters follow; else UTF-8. */
const PACKED = 0x80
/** In place of a length: it follows, in three bytes. */
const LONG = 0x7f
const LONG_BYTES = 3
export const PACKED_TEXT_BYTES_MAX = 2 ** (LONG_BYTES * BYTE_BITS) - 1

function isOfLetters(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) {
    if ((codes[text.charCodeAt(i)] ?? NO_LETTER) === NO_LETTER) return false
  }
  return true
}

const headBytes = (length: number): number => (length < LONG ? 1 : 1 + LONG_BYTES)
const packedBytes = (length: number): number => Math.ceil((length * LETTER_BITS) / BYTE_BITS)

/** What `writePackedText` takes for a text. */
export function packedTextBytes(text: string): number {
  if (isOfLetters(text)) return headBytes(text.length) + packedBytes(text.length)
  const length = Buffer.byteLength(text)
  return headBytes(length) + length
}

/** @returns where it ends. */
export function writePackedText(bytes: Buffer, at: number, text: string): number {
  if (!isOfLetters(text)) {
    const length = Buffer.byteLength(text)
    const start = writeHead(bytes, at, length, 0)
    return start + bytes.write(text, start)
  }
  let end = writeHead(bytes, at, text.length, PACKED)
  let pending = 0
  let bits = 0
  for (let i = 0; i < text.length; i += 1) {
    pending = (pending << LETTER_BITS) | (codes[text.charCodeAt(i)] ?? 0)
    bits += LETTER_BITS
    if (bits < BYTE_BITS) continue
    bits -= BYTE_BITS
    bytes[end] = pending >>> bits
    end += 1
    pending &= (1 << bits) - 1
  }
  if (bits === 0) return end
  bytes[end] = pending << (BYTE_BITS - bits)
  return end + 1
}

function writeHead(bytes: Buffer, at: number, length: number, form: number): number {
  assert(length <= PACKED_TEXT_BYTES_MAX, 'a packed text is of bounded size')
  if (length < LONG) return bytes.writeUInt8(form | length, at)
  return bytes.writeUIntLE(length, bytes.writeUInt8(form | LONG, at), LONG_BYTES)
}

/** Where a text stands: its own bytes as UTF-8 are `length`, as letters are ASCII. */
export interface PackedText {
  readonly start: number
  readonly length: number
  readonly end: number
  readonly isPacked: boolean
}

export function packedTextAt(bytes: Buffer, at: number): PackedText {
  const first = bytes[at] ?? 0
  const short = first & LONG
  const length = short < LONG ? short : bytes.readUIntLE(at + 1, LONG_BYTES)
  const start = at + headBytes(length)
  const isPacked = (first & PACKED) !== 0
  return { start, length, end: start + (isPacked ? packedBytes(length) : length), isPacked }
}

export function readPackedText(
  bytes: Buffer,
  { start, length, end, isPacked }: PackedText,
): string {
  if (!isPacked) return bytes.toString('utf8', start, end)
  let text = ''
  let pending = 0
  let bits = 0
  for (let at = start; text.length < length;) {
    if (bits < LETTER_BITS) {
      pending = (pending << BYTE_BITS) | (bytes[at] ?? 0)
      bits += BYTE_BITS
      at += 1
    }
    bits -= LETTER_BITS
    text += LETTERS[pending >>> bits] ?? ''
    pending &= (1 << bits) - 1
  }
  return text
}
