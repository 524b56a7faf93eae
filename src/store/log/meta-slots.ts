import { crc32 } from 'node:zlib'
import { assert } from '../../lib/assert.ts'
import { readSafeInteger, writeSafeInteger } from '../../raft/entry-codec.ts'
import type { HardState, Index, Position } from '../../raft/types.ts'
import { unsupportedFormatError, StoreError, voteLostError } from '../errors.ts'
import type { FileSystem } from '../file-system.ts'
import { WAL_FORMAT } from './wal-format.ts'

/**
 * Values that must be exact at every start. They are in one page, which one write replaces
 * completely (bugs 2 and 3 in `test/zoo/`).
 *
 * Page: 0 magic "FLOTMETA" · 8 u32 format · 12 u32 bytes of votedFor (0xffffffff: none) · 16
 * store id (16) · 32 u64 sequence of the write · 40 u64 term · 48 u64 commit · 56 u64 boot · 64 u64
 * first segment · 72 u64 synced segment · 80 u64 synced offset · 88 votedFor, UTF-8 · zeros · 1024
 * u32 flags (1: has the last position, 2: closed in order, 4: owed is set) · 1028 zeros · 1032 u64
 * index, 1040 u64 term of the last entry · 1048 u64 index, 1056 u64 term owed · zeros · 4092 u32
 * CRC-32 of all before it
 *
 * Format 1, or 2 while the log has a missing tail (raft/missing-tail.ts), because an older program
 * would ignore it and vote.
 *
 * The page is written to one slot and synced, and then to the other slot. The write is
 * acknowledged once both slots are synced. If a power cut tears one slot, or its content decays
 * later, the other slot contains the newest acknowledged page.
 */
export interface LogMetadata {
  readonly hardState: HardState
  /** Highest index that is known to be committed and is durable on this disk. */
  readonly commit: Index
  readonly boot: number
  /** Sequence number of the log's first segment. Segments with lower numbers are leftovers. */
  readonly firstSegment: number
  /** Everything before this position was synced, so damage before it cannot be a torn tail. */
  readonly synced: { readonly segment: number; readonly offset: number }
  /**
   * Position of the last entry before `synced`; null if an older program wrote the page without
   * this value.
   */
  readonly last: Position | null
  /** Whether the log was closed after the last sync and has not been opened since. */
  readonly isClosed: boolean
  /**
   * Position up to which the log may lack entries that this member acknowledged
   * (raft/missing-tail.ts); null if none is missing.
   */
  readonly owed: Position | null
}

const META_NAMES = ['meta.0', 'meta.1'] as const
const PAGE_BYTES = 4096
const VOTED_FOR_AT = 88
export const NODE_ID_BYTES_MAX = 256
const NOBODY = 0xffffffff
const FORMAT_OWING = 2
const FLAGS_AT = 1024
const LAST_AT = 1032
const OWED_AT = 1048
const FLAG_LAST = 1
const FLAG_CLOSED = 2
const FLAG_OWING = 4
const MAGIC = Buffer.from('FLOTMETA', 'latin1')

function encodeMeta(storeId: Uint8Array, sequence: number, meta: LogMetadata): Uint8Array {
  const page = new Uint8Array(PAGE_BYTES)
  const view = new DataView(page.buffer)
  const { term, votedFor } = meta.hardState
  const name = Buffer.from(votedFor ?? '', 'utf8')
  assert(name.length <= NODE_ID_BYTES_MAX, `a node id has at most ${NODE_ID_BYTES_MAX} bytes`)
  page.set(MAGIC, 0)
  view.setUint32(8, meta.owed === null ? WAL_FORMAT : FORMAT_OWING, true)
  view.setUint32(12, votedFor === null ? NOBODY : name.length, true)
  page.set(storeId, 16)
  const numbers = [sequence, term, meta.commit, meta.boot, meta.firstSegment]
  numbers.push(meta.synced.segment, meta.synced.offset)
  numbers.forEach((value, position) => writeSafeInteger(view, 32 + position * 8, value))
  page.set(name, VOTED_FOR_AT)
  const flags =
    (meta.last === null ? 0 : FLAG_LAST) |
    (meta.isClosed ? FLAG_CLOSED : 0) |
    (meta.owed === null ? 0 : FLAG_OWING)
  view.setUint32(FLAGS_AT, flags, true)
  setPosition(view, LAST_AT, meta.last)
  setPosition(view, OWED_AT, meta.owed)
  view.setUint32(PAGE_BYTES - 4, crc32(page.subarray(0, PAGE_BYTES - 4)), true)
  return page
}

function setPosition(view: DataView, at: number, position: Position | null): void {
  if (position === null) return
  writeSafeInteger(view, at, position.index)
  writeSafeInteger(view, at + 8, position.term)
}

function positionAt(view: DataView, at: number): Position | null {
  const [index, term] = [readSafeInteger(view, at), readSafeInteger(view, at + 8)]
  return index === null || term === null ? null : { term, index }
}

interface ReadPage {
  readonly sequence: number
  readonly storeId: Uint8Array
  readonly meta: LogMetadata
}

export interface ReadLogMeta {
  readonly meta: LogMetadata
  readonly sequence: number
  /**
   * Slot to which the next write must go first: the slot that does not contain the newest valid
   * page.
   */
  readonly writeFirst: 0 | 1
}

function decodeMeta(page: Uint8Array, path: string): ReadPage | null {
  if (page.length !== PAGE_BYTES) return null
  const view = new DataView(page.buffer, page.byteOffset, page.length)
  // @guard crc-of-a-meta-page
  if (view.getUint32(PAGE_BYTES - 4, true) !== crc32(page.subarray(0, PAGE_BYTES - 4))) return null
  if (MAGIC.compare(page, 0, 8) !== 0) return null
  const format = view.getUint32(8, true)
  if (format > FORMAT_OWING) throw unsupportedFormatError(path, format, FORMAT_OWING)
  const nameLength = view.getUint32(12, true)
  if (nameLength !== NOBODY && nameLength > NODE_ID_BYTES_MAX) return null
  const flags = view.getUint32(FLAGS_AT, true)
  const number = (at: number): number => readSafeInteger(view, at) ?? Number.NaN
  const name = page.subarray(VOTED_FOR_AT, VOTED_FOR_AT + nameLength)
  const votedFor = nameLength === NOBODY ? null : Buffer.from(name).toString('utf8')
  const meta = {
    hardState: { term: number(40), votedFor },
    commit: number(48),
    boot: number(56),
    firstSegment: number(64),
    synced: { segment: number(72), offset: number(80) },
    last: (flags & FLAG_LAST) === 0 ? null : positionAt(view, LAST_AT),
    isClosed: (flags & FLAG_CLOSED) !== 0,
    owed: (flags & FLAG_OWING) === 0 ? null : positionAt(view, OWED_AT),
  }
  const all = [number(32), meta.hardState.term, meta.commit, meta.boot, meta.firstSegment]
  if (![...all, meta.synced.segment, meta.synced.offset].every(Number.isSafeInteger)) return null
  return { sequence: number(32), storeId: page.slice(16, 32), meta }
}

/**
 * Reads the newest valid page.
 * @throws {StoreError} VOTE_LOST when neither slot is valid; FOREIGN when the newest page belongs
 * to another store; NEWER_FORMAT.
 */
export function readLogMetadata(files: FileSystem, dir: string, storeId: Uint8Array): ReadLogMeta {
  const [first, second] = META_NAMES.map((name) => {
    const path = `${dir}/${name}`
    return files.exists(path) ? decodeMeta(files.read(path), path) : null
  })
  const isSecondNewest =
    second !== null &&
    second !== undefined &&
    (first === null || first === undefined || second.sequence > first.sequence)
  const newest = isSecondNewest ? second : first
  if (newest === null || newest === undefined) {
    throw voteLostError(`${dir}/${META_NAMES[0]}`)
  }
  if (Buffer.compare(newest.storeId, storeId) !== 0) {
    throw new StoreError(
      'FOREIGN',
      `${dir}/${META_NAMES[isSecondNewest ? 1 : 0]}`,
      `${dir}/${META_NAMES[isSecondNewest ? 1 : 0]} belongs to store ${Buffer.from(newest.storeId).toString('hex')}, not to ${Buffer.from(storeId).toString('hex')} of IDENTITY: files of two data folders were mixed; put the right ones back.`,
    )
  }
  return { meta: newest.meta, sequence: newest.sequence, writeFirst: isSecondNewest ? 0 : 1 }
}

/** Writes the slots of one open data folder. Blocking; durable when `write` returns. */
export class MetaSlots {
  readonly #files: FileSystem
  readonly #storeId: Uint8Array
  readonly #slots: readonly { readonly path: string; readonly fd: number }[]
  #sequence: number

  constructor(
    files: FileSystem,
    dir: string,
    options: { storeId: Uint8Array; sequence: number; writeFirst: 0 | 1 },
  ) {
    this.#files = files
    this.#storeId = options.storeId
    this.#sequence = options.sequence
    const names = options.writeFirst === 0 ? META_NAMES : [...META_NAMES].reverse()
    this.#slots = names.map((name) => {
      const path = `${dir}/${name}`
      return { path, fd: files.open(path, !files.exists(path)) }
    })
  }

  write(meta: LogMetadata): void {
    this.#sequence += 1
    // @guard 03-state-file-emptied-before-it-is-written
    const page = encodeMeta(this.#storeId, this.#sequence, meta)
    for (const slot of this.#slots) {
      this.#files.write(slot.fd, slot.path, page, 0)
      this.#files.sync(slot.fd, slot.path)
    }
  }

  close(): void {
    for (const slot of this.#slots) this.#files.close(slot.fd)
  }
}
