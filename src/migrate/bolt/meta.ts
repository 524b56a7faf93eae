/**
 * The two meta pages of a bbolt file. Source: bbolt 4e65d8fd, internal/common/meta.go:12-65 and
 * types.go:13-18; db.go:332-420 (page size) and 1141-1162 (choice).
 */
import { damagedDatabaseFault, MigrationFault } from '../fault.ts'
import { migrateLimits } from '../limits.ts'
import type { ByteSource } from './byte-source.ts'
import { PAGE_HEADER_BYTES, BoltPage, pageFlags } from './bolt-page.ts'

const MAGIC = 0xed0cdaed
const VERSION = 2
/** Size of a meta page's content, from the magic number to its checksum. */
const SUMMED_BYTES = 56
const META_BYTES = PAGE_HEADER_BYTES + SUMMED_BYTES + 8
const PAGE_SIZE_MIN = 1024
const PAGE_SIZES = 15
const PAGE_SIZE_MAX = PAGE_SIZE_MIN << (PAGE_SIZES - 1)
/** Minimum number of pages: an empty database has two meta pages, a root and a free list. */
const PAGES_MIN = 4

/** One of the two meta pages: a consistent version of the file. */
export interface BoltMeta {
  readonly isLittleEndian: boolean
  readonly pageSize: number
  readonly rootPage: number
  readonly freeListPage: number
  /** Number of pages that the file has ever used. */
  readonly highWaterMark: number
  readonly transaction: number
}

/**
 * The intact meta page with the higher transaction number.
 * @throws {MigrationFault} NOT_A_DATABASE, CUT_OFF, DAMAGED or TOO_LARGE.
 */
export function readBoltMeta(source: ByteSource): BoltMeta {
  if (source.size > migrateLimits.fileBytesMax) {
    throw new MigrationFault(
      'TOO_LARGE',
      `it has ${source.size} bytes, and at most ${migrateLimits.fileBytesMax} are read`,
    )
  }
  const first = metaAt(source, 0)
  const second =
    first === null ? findSecond(source) : metaAt(source, first.pageSize, first.pageSize)
  const found = newer(first, second)
  if (found === null) throw noMetaFault(source)
  requirePages(found, source.size)
  return found
}

function newer(first: BoltMeta | null, second: BoltMeta | null): BoltMeta | null {
  if (first === null || second === null) return first ?? second
  return second.transaction > first.transaction ? second : first
}

/**
 * Searches for the second meta page, because without an intact first page the page size is unknown.
 */
function findSecond(source: ByteSource): BoltMeta | null {
  for (let size = PAGE_SIZE_MIN; size <= PAGE_SIZE_MAX; size *= 2) {
    const meta = metaAt(source, size, size)
    if (meta !== null) return meta
  }
  return null
}

function metaAt(source: ByteSource, offset: number, pageSize: number | null = null) {
  const bytes = source.read(offset, META_BYTES)
  if (bytes.length < META_BYTES) return null
  for (const isLittleEndian of [true, false]) {
    const page = new BoltPage(bytes, isLittleEndian)
    if (page.u32(PAGE_HEADER_BYTES) !== MAGIC || page.u32(PAGE_HEADER_BYTES + 4) !== VERSION) {
      continue
    }
    const meta = {
      isLittleEndian,
      pageSize: page.u32(PAGE_HEADER_BYTES + 8),
      rootPage: page.u64(PAGE_HEADER_BYTES + 16),
      freeListPage: page.u64(PAGE_HEADER_BYTES + 32),
      highWaterMark: page.u64(PAGE_HEADER_BYTES + 40),
      transaction: page.u64(PAGE_HEADER_BYTES + 48),
    }
    const isWhole =
      page.flags === pageFlags.meta &&
      page.id === (offset === 0 ? 0 : 1) &&
      page.bigU64(PAGE_HEADER_BYTES + SUMMED_BYTES) ===
        fnv1a(bytes.subarray(PAGE_HEADER_BYTES, PAGE_HEADER_BYTES + SUMMED_BYTES)) &&
      isPageSize(meta.pageSize) &&
      (pageSize === null || pageSize === meta.pageSize)
    return isWhole ? meta : null
  }
  return null
}

function isPageSize(size: number): boolean {
  return size >= PAGE_SIZE_MIN && size <= PAGE_SIZE_MAX && (size & (size - 1)) === 0
}

function requirePages({ highWaterMark, pageSize, rootPage }: BoltMeta, size: number): void {
  if (highWaterMark < PAGES_MIN || rootPage < 2 || rootPage >= highWaterMark) {
    throw damagedDatabaseFault('its first pages contradict each other')
  }
  if (highWaterMark * pageSize <= size) return
  throw new MigrationFault(
    'CUT_OFF',
    `the database is cut off: it has ${size} bytes, and needs ${highWaterMark * pageSize}; use another copy`,
  )
}

function noMetaFault(source: ByteSource): MigrationFault {
  if (source.size === 0) {
    return new MigrationFault('CUT_OFF', 'the file is empty; name the database of a controller')
  }
  return new MigrationFault(
    'NOT_A_DATABASE',
    'it is not a database of an OpenZiti controller, or its first two pages are damaged; name ctrl.db, ctrl-ha.db or a snapshot of one',
  )
}

/** FNV-1a hash with 64 bits. */
export function fnv1a(bytes: Uint8Array): bigint {
  let sum = 0xcbf29ce484222325n
  for (const byte of bytes) sum = BigInt.asUintN(64, (sum ^ BigInt(byte)) * 0x100000001b3n)
  return sum
}
