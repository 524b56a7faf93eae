/**
 * The write-ahead log on disk, format 1. Numbers are little endian; u64 holds a safe integer.
 * Format 1 is frozen: a change gets a new number, and old numbers stay readable.
 *
 *     IDENTITY                     JSON, rewritten only by `cluster recover` (data-identity.ts)
 *     meta.0 meta.1                4 KiB each, the same content (meta-slots.ts)
 *     wal/<first>-<sequence>.seg   16 and 8 hex digits
 *     wal/next.tmp                 the next segment while it is filled with zeros; never read
 *
 * A segment consists of one 4 KiB header page, records and zeros. Files are filled with zeros
 * before they are used, so that a sync writes only data and no change of the file size.
 *
 * Header page: 0 magic "FLOTWAL\n" · 8 u32 format · 12 u32 flags (1: begins a new log) · 16
 *              store id (16) · 32 u64 sequence · 40 u64 first index · 48 u64 index, 56 u64 term, 64
 *              chain (16) of the entry before · 80 u64 file size, 0: not recorded · 88 zeros ·
 *              4092 u32 CRC-32 of the bytes before it
 * Record: 0 packed entry header (32, raft/entry-codec.ts) · 32 u32 CRC-32 of the body · 36 chain
 *              (16) · 52 u32 bytes from the first record of its flush to this one · 56 u32 CRC-32
 *              of bytes 0-55, seeded with the CRC-32 of store id and sequence, so that a record of
 *              another segment is invalid here · 60 body · zeros up to a multiple of 8
 * Chain: first 16 bytes of SHA-256(chain of the entry before, packed entry header, body); zeros
 *              before the first entry and after a reset
 *
 * Records are only appended. A record whose index is not after the last one replaces all entries
 * from that index on. If it would reach back before the first index of its segment, it goes to a
 * new segment. The header of a segment truncates the log after its "entry before" even while the
 * segment has no records, so no older segment holds later entries. Segment sequences are
 * consecutive, starting at the first segment that the meta slots name. A segment is synced
 * completely before the next one is created.
 *
 * Torn or corrupt: one flush is one unsynced range of a segment, and a power cut may keep any of
 * its sectors. An invalid record is therefore the torn end of the log only if it lies after the
 * synced offset of the meta slots, and every valid record after the invalid one belongs to a flush
 * that began at or before the invalid one. Any other invalid record means that acknowledged data
 * was lost.
 *
 * A later program may give zero bytes of format 1 a meaning if older programs can safely ignore it.
 */
import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { assert } from '../../lib/assert.ts'
import {
  ENTRY_HEADER_BYTES,
  readSafeInteger,
  readEntryHeader,
  writeSafeInteger,
  type EntryHeader,
} from '../../raft/entry-codec.ts'
import type { Position } from '../../raft/types.ts'

export const WAL_FORMAT = 1
export const SEGMENT_HEADER_BYTES = 4096
export const RECORD_HEADER_BYTES = 60
export const CHAIN_BYTES = 16
export const STORE_ID_BYTES = 16

const BODY_CRC_AT = ENTRY_HEADER_BYTES
export const RECORD_CHAIN_OFFSET = 36
const FLUSH_DISTANCE_AT = 52
const HEADER_CRC_AT = 56
const MAGIC = Buffer.from('FLOTWAL\n', 'latin1')
const FLAG_RESET = 1

export const ZERO_CHAIN = new Uint8Array(CHAIN_BYTES)

/** Decoded header page of a segment file. */
export interface SegmentHeader {
  readonly storeId: Uint8Array
  readonly sequence: number
  /**
   * True if this segment begins a new log: an empty log replaced the old log and continues after
   * `previous`.
   */
  readonly isReset: boolean
  readonly previous: Position
  readonly previousChain: Uint8Array
  /**
   * Size of the file. A file never shrinks, so a file that is shorter was truncated. 0: not
   * recorded.
   */
  readonly fileBytes: number
}

/** The header page of a segment, with its checksum. */
export function encodeSegmentHeader(header: SegmentHeader): Uint8Array {
  const page = new Uint8Array(SEGMENT_HEADER_BYTES)
  const view = new DataView(page.buffer)
  page.set(MAGIC, 0)
  view.setUint32(8, WAL_FORMAT, true)
  view.setUint32(12, header.isReset ? FLAG_RESET : 0, true)
  page.set(header.storeId, 16)
  writeSafeInteger(view, 32, header.sequence)
  writeSafeInteger(view, 40, header.previous.index + 1)
  writeSafeInteger(view, 48, header.previous.index)
  writeSafeInteger(view, 56, header.previous.term)
  page.set(header.previousChain, 64)
  writeSafeInteger(view, 80, header.fileBytes)
  view.setUint32(SEGMENT_HEADER_BYTES - 4, crc32(page.subarray(0, SEGMENT_HEADER_BYTES - 4)), true)
  return page
}

/**
 * Decodes the header page of a segment.
 * @returns null if the page is damaged; the number of the format if the format is newer.
 */
export function decodeSegmentHeader(bytes: Uint8Array): SegmentHeader | number | null {
  if (bytes.length < SEGMENT_HEADER_BYTES) return null
  const view = new DataView(bytes.buffer, bytes.byteOffset, SEGMENT_HEADER_BYTES)
  const crc = crc32(bytes.subarray(0, SEGMENT_HEADER_BYTES - 4))
  // @guard crc-of-a-segment-header
  if (view.getUint32(SEGMENT_HEADER_BYTES - 4, true) !== crc) return null
  if (MAGIC.compare(bytes, 0, 8) !== 0) return null
  const format = view.getUint32(8, true)
  if (format > WAL_FORMAT) return format
  const sequence = readSafeInteger(view, 32)
  const firstIndex = readSafeInteger(view, 40)
  const index = readSafeInteger(view, 48)
  const term = readSafeInteger(view, 56)
  const fileBytes = readSafeInteger(view, 80)
  if (sequence === null || index === null || term === null || firstIndex !== index + 1) return null
  if (fileBytes === null) return null
  return {
    storeId: bytes.slice(16, 32),
    sequence,
    isReset: (view.getUint32(12, true) & FLAG_RESET) !== 0,
    previous: { term, index },
    previousChain: bytes.slice(64, 64 + CHAIN_BYTES),
    fileBytes,
  }
}

/** File name of a segment. Sorted names are in the order of the segments' first indexes. */
export function segmentName(firstIndex: number, sequence: number): string {
  return `${firstIndex.toString(16).padStart(16, '0')}-${sequence.toString(16).padStart(8, '0')}.seg`
}

/**
 * Parses the file name of a segment.
 * @returns null when the name does not belong to a segment.
 */
export function parseSegmentName(name: string): { firstIndex: number; sequence: number } | null {
  const match = /^([0-9a-f]{16})-([0-9a-f]{8})\.seg$/.exec(name)
  if (match === null) return null
  return {
    firstIndex: Number.parseInt(match[1] ?? '', 16),
    sequence: Number.parseInt(match[2] ?? '', 16),
  }
}

/** Size of a record in the file: header, body, and zeros up to a multiple of 8. */
export function recordByteLength(bodyLength: number): number {
  return (RECORD_HEADER_BYTES + bodyLength + 7) & ~7
}

/** Seed for the CRCs in the record headers of one segment. */
export function recordCrcSeed(storeId: Uint8Array, sequence: number): number {
  const bytes = new Uint8Array(STORE_ID_BYTES + 8)
  bytes.set(storeId, 0)
  writeSafeInteger(new DataView(bytes.buffer), STORE_ID_BYTES, sequence)
  return crc32(bytes)
}

/**
 * Completes the record at `at`. The body must already be at `at + RECORD_HEADER_BYTES`, directly
 * after the packed entry header. The function hashes previous chain, header and body in one piece,
 * which saves a copy of every body, and writes the new chain at `at + RECORD_CHAIN_OFFSET`.
 */
export function completeRecord(
  buffer: Buffer,
  view: DataView,
  at: number,
  record: { bodyLength: number; previousChain: Uint8Array; flushDistance: number; seed: number },
): void {
  const bodyAt = at + RECORD_HEADER_BYTES
  const end = bodyAt + record.bodyLength
  const headerAt = bodyAt - ENTRY_HEADER_BYTES
  buffer.set(record.previousChain, headerAt - CHAIN_BYTES)
  const digest = hash('sha256', buffer.subarray(headerAt - CHAIN_BYTES, end), 'binary')
  buffer.copyWithin(at, headerAt, bodyAt)
  view.setUint32(at + BODY_CRC_AT, crc32(buffer.subarray(bodyAt, end)), true)
  buffer.write(digest, at + RECORD_CHAIN_OFFSET, CHAIN_BYTES, 'latin1')
  view.setUint32(at + FLUSH_DISTANCE_AT, record.flushDistance, true)
  const crc = crc32(buffer.subarray(at, at + HEADER_CRC_AT), record.seed)
  view.setUint32(at + HEADER_CRC_AT, crc, true)
  buffer.fill(0, end, at + recordByteLength(record.bodyLength))
}

export interface FoundRecord extends EntryHeader {
  readonly bodyAt: number
  /** Offset just after the record and its padding. */
  readonly end: number
  /** Offset of the first record in the same flush. */
  readonly flushStart: number
}

/**
 * Reads the record at an offset of a segment.
 * @returns null when there is no intact record of this segment at offset `at`.
 */
export function findRecord(
  bytes: Uint8Array,
  view: DataView,
  at: number,
  seed: number,
): FoundRecord | null {
  if (at + RECORD_HEADER_BYTES > bytes.length) return null
  const header = readEntryHeader(view, at)
  if (header === null) return null
  const end = at + recordByteLength(header.bodyLength)
  if (end > bytes.length || header.index === 0) return null
  const headerCrc = crc32(bytes.subarray(at, at + HEADER_CRC_AT), seed)
  // @guard crc-of-a-record-header
  if (view.getUint32(at + HEADER_CRC_AT, true) !== headerCrc) return null
  const bodyAt = at + RECORD_HEADER_BYTES
  const bodyCrc = crc32(bytes.subarray(bodyAt, bodyAt + header.bodyLength))
  // @guard crc-of-a-record-body
  if (view.getUint32(at + BODY_CRC_AT, true) !== bodyCrc) return null
  return { ...header, bodyAt, end, flushStart: at - view.getUint32(at + FLUSH_DISTANCE_AT, true) }
}

/** The chain value that the record at `at` must have if the entry before it has `previousChain`. */
export function expectedChainValue(
  bytes: Uint8Array,
  at: number,
  record: FoundRecord,
  previousChain: Uint8Array,
): Uint8Array {
  const input = new Uint8Array(CHAIN_BYTES + ENTRY_HEADER_BYTES + record.bodyLength)
  assert(previousChain.length === CHAIN_BYTES, 'a chain is 16 bytes')
  input.set(previousChain, 0)
  input.set(bytes.subarray(at, at + ENTRY_HEADER_BYTES), CHAIN_BYTES)
  input.set(
    bytes.subarray(record.bodyAt, record.bodyAt + record.bodyLength),
    CHAIN_BYTES + ENTRY_HEADER_BYTES,
  )
  return hash('sha256', input, 'buffer').subarray(0, CHAIN_BYTES)
}
