import { assert } from '../../lib/assert.ts'
import type { Entry, Index, Position } from '../../raft/types.ts'
import { ReplaceableEntryChains } from './replaceable-entry-chains.ts'
import { corruptError, isCorruptStoreError, unsupportedFormatError, StoreError } from '../errors.ts'
import type { FileSystem } from '../file-system.ts'
import type { LogMetadata } from './meta-slots.ts'
import {
  RECORD_CHAIN_OFFSET,
  CHAIN_BYTES,
  decodeSegmentHeader,
  expectedChainValue,
  findRecord,
  parseSegmentName,
  recordCrcSeed,
  SEGMENT_HEADER_BYTES,
  type FoundRecord,
  type SegmentHeader,
} from './wal-format.ts'

/** A segment file of the log. */
export interface Segment {
  readonly path: string
  readonly sequence: number
  /** Index of the entry before the segment's first entry. */
  readonly previousIndex: Index
}

/**
 * Contents of the log files, read without any change. The caller must clean up `cut` and
 * `leftovers`.
 */
export interface RecoveredLog {
  readonly base: Position
  readonly entries: Entry[]
  readonly chains: ReplaceableEntryChains
  readonly segments: Segment[]
  /** Offset at which the valid records in the last segment end. */
  readonly end: number
  readonly capacity: number
  /** The torn end of the log, after `end`; null when only zeros follow `end`. */
  readonly cut: { readonly path: string; readonly from: number; readonly to: number } | null
  /**
   * Paths of segments that do not belong to the log: a finished compaction or reset, or an
   * unfinished reset, left them.
   */
  readonly leftovers: readonly string[]
}

/** A position in the log files. */
export interface LogFilePosition {
  readonly sequence: number
  readonly offset: number
}

/**
 * The intact parts of a log that has lost synced data. `entries` are the entries after `base` and
 * before `until`.
 */
export interface DamagedLog {
  readonly damage: StoreError
  readonly base: Position
  readonly entries: readonly Entry[]
  /** Position in the files at which the intact part of the log ends. */
  readonly until: LogFilePosition
}

interface ReadSegment extends Segment {
  readonly bytes: Uint8Array
  readonly header: SegmentHeader
}

/**
 * Reads and validates the whole log without changing anything on disk.
 * @throws {StoreError} FOREIGN or NEWER_FORMAT.
 */
export function recoverLog(
  files: FileSystem,
  folder: string,
  storeId: Uint8Array,
  meta: LogMetadata,
): RecoveredLog | DamagedLog {
  const log = new LogReader(storeId, meta)
  try {
    return readLog(log, files, folder, { storeId, meta })
  } catch (error) {
    if (!isCorruptStoreError(error)) throw error
    return { damage: error, ...log.soFar }
  }
}

/** @throws {StoreError} */
function readLog(
  log: LogReader,
  files: FileSystem,
  folder: string,
  { storeId, meta }: { readonly storeId: Uint8Array; readonly meta: LogMetadata },
): RecoveredLog {
  const { current, leftovers, gap } = chooseSegments(files, folder, meta)
  current.forEach((segment, position) => {
    const read = readSegment(files, segment, storeId)
    const isLast = position === current.length - 1 && gap === null
    if (isLast && position > 0 && read.header.isReset) {
      // This segment belongs to a reset that never took effect: a crash came before the write of
      // the meta slots.
      leftovers.push(segment.path)
      return
    }
    log.addSegment(read)
  })
  if (gap !== null) throw gap
  return log.finish(leftovers)
}

/**
 * The segments in order of their sequence numbers, from the log's first segment up to the first
 * gap.
 */
function chooseSegments(
  files: FileSystem,
  folder: string,
  meta: LogMetadata,
): { current: Segment[]; leftovers: string[]; gap: StoreError | null } {
  if (!files.exists(folder)) throw corruptError(folder, 'the folder of the log is missing')
  const current: Segment[] = []
  const leftovers: string[] = []
  for (const name of files.list(folder)) {
    const parsed = parseSegmentName(name)
    if (parsed === null) continue
    const path = `${folder}/${name}`
    if (parsed.sequence < meta.firstSegment) leftovers.push(path)
    else current.push({ path, sequence: parsed.sequence, previousIndex: parsed.firstIndex - 1 })
  }
  current.sort((a, b) => a.sequence - b.sequence)
  const newest = Math.max(meta.firstSegment, meta.synced.segment, current.at(-1)?.sequence ?? 0)
  for (let sequence = meta.firstSegment; sequence <= newest; sequence += 1) {
    const found = current.filter((segment) => segment.sequence === sequence)
    if (found.length === 1) continue
    const name = sequence.toString(16).padStart(8, '0')
    const what = found.length === 0 ? 'missing' : 'there twice'
    const gap = corruptError(folder, `the segment with sequence ${name} is ${what}`)
    return { current: current.filter((segment) => segment.sequence < sequence), leftovers, gap }
  }
  return { current, leftovers, gap: null }
}

/** Reads a file. Bytes that the device cannot read are treated as damaged, like changed bytes. */
function readBytes(files: FileSystem, path: string): Uint8Array {
  try {
    return files.read(path)
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== 'IO') throw error
    throw corruptError(path, `the segment cannot be read (${error.message})`)
  }
}

function readSegment(files: FileSystem, segment: Segment, storeId: Uint8Array): ReadSegment {
  const bytes = readBytes(files, segment.path)
  const header = decodeSegmentHeader(bytes)
  if (header === null) throw corruptError(segment.path, 'the header of the segment is damaged', 0)
  if (typeof header === 'number') throw unsupportedFormatError(segment.path, header, 1)
  requireOwnStore(segment.path, header, storeId)
  const { sequence, previous } = header
  if (sequence !== segment.sequence || previous.index !== segment.previousIndex) {
    throw corruptError(segment.path, 'the header does not belong to a segment of this name', 0)
  }
  if (bytes.length < header.fileBytes) {
    const what = `the file has ${bytes.length} bytes instead of ${header.fileBytes}`
    throw corruptError(segment.path, what)
  }
  return { ...segment, bytes, header }
}

/**
 * Checks that a segment belongs to this store.
 * @throws {StoreError} FOREIGN.
 */
export function requireOwnStore(path: string, header: SegmentHeader, storeId: Uint8Array): void {
  if (Buffer.compare(header.storeId, storeId) === 0) return
  throw new StoreError(
    'FOREIGN',
    path,
    `${path} belongs to store ${Buffer.from(header.storeId).toString('hex')}, not to ${Buffer.from(storeId).toString('hex')} of IDENTITY: files of two data folders were mixed; put the right ones back.`,
  )
}

class LogReader {
  readonly #storeId: Uint8Array
  readonly #meta: LogMetadata
  readonly #segments: Segment[] = []
  #base: Position = { term: 0, index: 0 }
  #entries: Entry[] = []
  #chains: ReplaceableEntryChains | null = null
  #end = 0
  #capacity = 0
  #cut: RecoveredLog['cut'] = null

  constructor(storeId: Uint8Array, meta: LogMetadata) {
    this.#storeId = storeId
    this.#meta = meta
  }

  get soFar(): Omit<DamagedLog, 'damage'> {
    const sequence = this.#segments.at(-1)?.sequence ?? 0
    const until = { sequence, offset: this.#end }
    return { base: this.#base, entries: this.#entries, until }
  }

  addSegment(segment: ReadSegment): void {
    // Only the last segment may end in a torn write, because each segment is synced completely
    // before the next segment is created.
    if (this.#cut !== null) {
      throw corruptError(
        this.#cut.path,
        'a record is damaged, and further segments follow',
        this.#cut.from,
      )
    }
    this.#join(segment)
    const { path, sequence, previousIndex } = segment
    this.#segments.push({ path, sequence, previousIndex })
    this.#capacity = segment.bytes.length
    this.#end = SEGMENT_HEADER_BYTES
    this.#readRecords(segment)
  }

  finish(leftovers: readonly string[]): RecoveredLog {
    const chains = this.#opened()
    const { synced, commit } = this.#meta
    const last = this.#segments.at(-1)
    if (last !== undefined && last.sequence === synced.segment && this.#end < synced.offset) {
      throw corruptError(
        last.path,
        `a record is damaged or missing, although the log was synced up to byte ${synced.offset}`,
        this.#end,
      )
    }
    if (chains.last.index < commit) {
      throw corruptError(
        last?.path ?? '',
        `the log ends at index ${chains.last.index} and was synced and committed up to ${commit}`,
      )
    }
    return {
      base: this.#base,
      entries: this.#entries,
      chains,
      segments: this.#segments,
      end: this.#end,
      capacity: this.#capacity,
      cut: this.#cut,
      leftovers,
    }
  }

  #opened(): ReplaceableEntryChains {
    assert(this.#chains !== null, 'a log has at least one segment')
    return this.#chains
  }

  #join(segment: ReadSegment): void {
    const { previous, previousChain } = segment.header
    if (this.#chains === null) {
      this.#base = previous
      this.#chains = new ReplaceableEntryChains(previous, previousChain)
      return
    }
    const isInside = previous.index >= this.#base.index && previous.index <= this.#chains.last.index
    // @guard chain-across-segments
    const isSame =
      isInside &&
      this.#chains.termAt(previous.index) === previous.term &&
      Buffer.compare(this.#chains.chainAt(previous.index), previousChain) === 0
    if (!isSame) {
      throw corruptError(segment.path, 'the segment does not continue the one before it', 0)
    }
    // A header that points back into the log shows that this segment replaces the entries after
    // that point, so those entries are dropped here. If they stayed while the replacement is
    // missing, later entries would follow them, and a compaction that makes this segment the first
    // would then lose them.
    this.#chains.truncateAfter(previous.index)
    this.#entries.length = previous.index - this.#base.index
  }

  #readRecords(segment: ReadSegment): void {
    const { bytes, path } = segment
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    const seed = recordCrcSeed(this.#storeId, segment.sequence)
    const found: FoundRecord[] = []
    try {
      for (;;) {
        const record = findRecord(bytes, view, this.#end, seed)
        if (record === null) break
        this.#admit(segment, this.#end, record)
        found.push(record)
        this.#end = record.end
      }
    } finally {
      this.#keepBodies(bytes, found)
    }
    const at = this.#end
    const lastByte = lastNonZeroOffset(bytes, at)
    if (lastByte < at) return
    this.#judgeTail(segment, view, seed, at)
    this.#cut = { path, from: at, to: lastByte + 1 }
  }

  #admit(segment: ReadSegment, at: number, record: FoundRecord): void {
    const chains = this.#opened()
    const { index } = record
    if (index <= segment.header.previous.index || index > chains.last.index + 1) {
      throw corruptError(segment.path, `record of index ${index} is out of order`, at)
    }
    const expected = expectedChainValue(segment.bytes, at, record, chains.chainAt(index - 1))
    const chain = segment.bytes.subarray(
      at + RECORD_CHAIN_OFFSET,
      at + RECORD_CHAIN_OFFSET + CHAIN_BYTES,
    )
    // @guard chain-of-the-records
    if (Buffer.compare(chain, expected) !== 0) {
      throw corruptError(segment.path, `the hash chain breaks at the record of index ${index}`, at)
    }
    if (record.term < chains.termAt(index - 1)) {
      throw corruptError(segment.path, `the term decreases at the record of index ${index}`, at)
    }
    chains.truncateAfter(index - 1)
    chains.push(record.term, chain)
  }

  /**
   * Copies the bodies of one segment into a buffer of their total size, so that the zeros of the
   * segment do not stay in memory.
   */
  #keepBodies(bytes: Uint8Array, found: readonly FoundRecord[]): void {
    let total = 0
    for (const record of found) total += record.bodyLength
    const bodies = new Uint8Array(total)
    let at = 0
    for (const { index, term, timeMs, type, bodyAt, bodyLength } of found) {
      bodies.set(bytes.subarray(bodyAt, bodyAt + bodyLength), at)
      this.#entries.length = index - this.#base.index - 1
      this.#entries.push({ index, term, timeMs, type, data: bodies.subarray(at, at + bodyLength) })
      at += bodyLength
    }
  }

  /**
   * Decides whether the invalid record at `at` can be the torn end of the last flush
   * (wal-format.ts).
   * @throws {StoreError} CORRUPT when it cannot.
   */
  #judgeTail(segment: ReadSegment, view: DataView, seed: number, at: number): void {
    for (let later = at + 8; later < segment.bytes.length; later += 8) {
      const record = findRecord(segment.bytes, view, later, seed)
      if (record === null) continue
      if (record.flushStart > at) {
        throw corruptError(
          segment.path,
          `a synced record is damaged; an intact one follows at byte ${later}`,
          at,
        )
      }
      later = record.end - 8
    }
  }
}

const ZEROS = new Uint8Array(4096)

/**
 * Finds the last byte that is not zero.
 * @returns its offset; `from - 1` if all bytes are zero.
 */
export function lastNonZeroOffset(bytes: Uint8Array, from: number): number {
  let end = bytes.length
  // Skips zeros in large steps: a segment is created at its full size, so most of it is zero for a
  // long time.
  while (end - from >= ZEROS.length && isZeros(bytes.subarray(end - ZEROS.length, end))) {
    end -= ZEROS.length
  }
  for (let at = end - 1; at >= from; at -= 1) if (bytes[at] !== 0) return at
  return from - 1
}

const isZeros = (block: Uint8Array): boolean => Buffer.compare(block, ZEROS) === 0
