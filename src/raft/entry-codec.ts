import { assert } from '../lib/assert.ts'
import type { Entry, EntryType } from './types.ts'

/**
 * Size of the header of a packed entry. Packed entries are used on the mesh, between threads and
 * (with checksums added) on disk. Little-endian: u32 body length, u8 type, 3 zero bytes, u64 index,
 * u64 term, u64 timeMs, body.
 */
export const ENTRY_HEADER_BYTES = 32
/**
 * Maximum body size. The Raft core refuses a larger command before logging it, and a decoder treats
 * a larger body as corruption.
 */
export const ENTRY_BODY_BYTES_MAX = 8 * 1024 * 1024

const TYPES: readonly EntryType[] = ['noop', 'configuration', 'command']

export function writeEntryHeader(view: DataView, at: number, entry: Entry): void {
  view.setUint32(at, entry.data.length, true)
  view.setUint32(at + 4, TYPES.indexOf(entry.type), true)
  writeSafeInteger(view, at + 8, entry.index)
  writeSafeInteger(view, at + 16, entry.term)
  writeSafeInteger(view, at + 24, entry.timeMs)
}

function encodedLength(entries: readonly Entry[]): number {
  let length = 0
  for (const entry of entries) length += ENTRY_HEADER_BYTES + entry.data.length
  return length
}

export function encodeEntries(entries: readonly Entry[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(encodedLength(entries))
  const view = new DataView(bytes.buffer)
  let at = 0
  for (const entry of entries) {
    writeEntryHeader(view, at, entry)
    bytes.set(entry.data, at + ENTRY_HEADER_BYTES)
    at += ENTRY_HEADER_BYTES + entry.data.length
  }
  return bytes
}

export interface EntryHeader {
  readonly bodyLength: number
  readonly type: EntryType
  readonly index: number
  readonly term: number
  readonly timeMs: number
}

/**
 * Reads the header of a packed entry.
 * @returns null when the bytes are not a valid header.
 */
export function readEntryHeader(view: DataView, at: number): EntryHeader | null {
  if (at + ENTRY_HEADER_BYTES > view.byteLength) return null
  const bodyLength = view.getUint32(at, true)
  const type = TYPES[view.getUint32(at + 4, true)]
  const index = readSafeInteger(view, at + 8)
  const term = readSafeInteger(view, at + 16)
  const timeMs = readSafeInteger(view, at + 24)
  if (bodyLength > ENTRY_BODY_BYTES_MAX || type === undefined) return null
  if (index === null || term === null || timeMs === null) return null
  return { bodyLength, type, index, term, timeMs }
}

/**
 * Decodes packed entries; their bodies are views into `bytes`.
 * @throws {RangeError} when the bytes are malformed.
 */
export function decodeEntries(bytes: Uint8Array): Entry[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const entries: Entry[] = []
  let at = 0
  while (at < bytes.length) {
    const header = readEntryHeader(view, at)
    const end = header === null ? Infinity : at + ENTRY_HEADER_BYTES + header.bodyLength
    if (header === null || end > bytes.length) throw new RangeError(`malformed entry at byte ${at}`)
    const { index, term, timeMs, type } = header
    entries.push({ index, term, timeMs, type, data: bytes.subarray(at + ENTRY_HEADER_BYTES, end) })
    at = end
  }
  return entries
}

/** Writes a safe integer as 8 bytes, little endian. */
export function writeSafeInteger(view: DataView, at: number, value: number): void {
  assert(Number.isSafeInteger(value) && value >= 0, 'a term, index or time is a safe integer')
  view.setUint32(at, value >>> 0, true)
  view.setUint32(at + 4, Math.floor(value / 4294967296), true)
}

/**
 * Reads 8 bytes, little endian.
 * @returns null when the value is not a safe integer.
 */
export function readSafeInteger(view: DataView, at: number): number | null {
  const value = view.getUint32(at + 4, true) * 4294967296 + view.getUint32(at, true)
  return Number.isSafeInteger(value) ? value : null
}
