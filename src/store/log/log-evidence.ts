import type { Index, Position } from '../../raft/types.ts'
import { unsupportedFormatError, StoreError } from '../errors.ts'
import type { FileSystem } from '../file-system.ts'
import type { LogMetadata } from './meta-slots.ts'
import { lastNonZeroOffset, requireOwnStore, type LogFilePosition } from './recovery.ts'
import {
  decodeSegmentHeader,
  findRecord,
  parseSegmentName,
  recordCrcSeed,
  SEGMENT_HEADER_BYTES,
  type SegmentHeader,
} from './wal-format.ts'

/** Evidence, from the files of a damaged log, about where the log ended. */
export interface LogEvidence {
  /**
   * Highest position, compared by term and then by index, that any file of the log contains or
   * refers to.
   */
  readonly best: Position
  /** True if the log certainly did not extend beyond `best`. */
  readonly isEndKnown: boolean
  /**
   * Lowest index of the records and segments that follow the position `after` in the files. Such a
   * record or segment replaced all entries from its index on.
   */
  readonly lowestAfter: Index
  /** Highest sequence number of a segment that the meta slots or the names of the files contain. */
  readonly newestSegment: number
  /** Paths of the segments, oldest first. */
  readonly paths: readonly string[]
}

/**
 * The greater of two log positions: the one with the higher term; if equal, the one with the higher
 * index.
 */
export function higherPosition(a: Position, b: Position): Position {
  if (a.term !== b.term) return a.term > b.term ? a : b
  return a.index >= b.index ? a : b
}

/**
 * Searches the segments of the log for intact headers, and for intact records at every multiple of
 * 8 bytes.
 *
 * The end of the log is known if the log was closed in order and the meta slots contain its last
 * position. The end is also known if the newest segment exists, contains everything that is known
 * to be synced, and has only zeros after that. A later flush whose bytes became zeros leaves no
 * trace, in a damaged log as in an intact one. Only the peers can detect that, because they
 * remember what this member acknowledged to them (cluster/mesh/rollback-detector.ts).
 * @param after the position to which `lowestAfter` refers.
 * @throws {StoreError} FOREIGN or NEWER_FORMAT.
 */
export function findLogEndEvidence(
  files: FileSystem,
  folder: string,
  { storeId, meta, after }: { storeId: Uint8Array; meta: LogMetadata; after: LogFilePosition },
): LogEvidence {
  const search = new EvidenceSearch(storeId, meta, after)
  const names = files.exists(folder) ? files.list(folder) : []
  const paths: { path: string; sequence: number }[] = []
  for (const name of names) {
    const parsed = parseSegmentName(name)
    if (parsed === null) continue
    const path = `${folder}/${name}`
    paths.push({ path, sequence: parsed.sequence })
    if (parsed.sequence >= meta.firstSegment) search.examine(files, path, parsed)
  }
  paths.sort((a, b) => a.sequence - b.sequence)
  return search.result(paths.map(({ path }) => path))
}

class EvidenceSearch {
  readonly #storeId: Uint8Array
  readonly #meta: LogMetadata
  readonly #after: LogFilePosition
  #best: Position
  #lowestAfter = Infinity
  /** Sequence number of the newest segment that is not part of an unfinished reset. */
  #newestCounted = 0
  #isNewestIntact = false
  #newestSegment: number

  constructor(storeId: Uint8Array, meta: LogMetadata, after: LogFilePosition) {
    this.#storeId = storeId
    this.#meta = meta
    this.#after = after
    const nothing = { term: 0, index: 0 }
    this.#best = higherPosition(meta.last ?? nothing, meta.owed ?? nothing)
    this.#newestSegment = Math.max(meta.firstSegment, meta.synced.segment)
  }

  examine(files: FileSystem, path: string, name: { firstIndex: Index; sequence: number }): void {
    const { sequence } = name
    this.#newestSegment = Math.max(this.#newestSegment, sequence)
    const bytes = readOrNull(files, path)
    const header = bytes === null ? null : this.#headerOf(path, bytes)
    // Segments of an unfinished reset or repair say nothing about the log.
    if (header?.isReset === true && sequence > this.#meta.synced.segment) return
    if (sequence > this.#after.sequence) this.#noteAfter(name.firstIndex)
    const isNewest = sequence >= this.#newestCounted
    if (isNewest) {
      this.#newestCounted = sequence
      this.#isNewestIntact = false
    }
    if (bytes === null) return
    if (header !== null) this.#best = higherPosition(this.#best, header.previous)
    // The search also uses the sequence number in the header, because a misdirected write may have
    // put the content of another segment into this file.
    const end = this.#searchRecords(bytes, header?.sequence ?? sequence, sequence)
    const { synced } = this.#meta
    const isLong = sequence !== synced.segment || end >= synced.offset
    const isWhole = header !== null && bytes.length >= header.fileBytes
    if (isNewest) {
      this.#isNewestIntact =
        isWhole && header.sequence === sequence && isLong && lastNonZeroOffset(bytes, end) < end
    }
  }

  result(paths: readonly string[]): LogEvidence {
    const { synced, isClosed, last } = this.#meta
    const isProvenByClose = isClosed && last !== null
    const isProvenByFiles = this.#isNewestIntact && this.#newestCounted >= synced.segment
    return {
      best: this.#best,
      isEndKnown: isProvenByClose || isProvenByFiles,
      lowestAfter: this.#lowestAfter,
      newestSegment: this.#newestSegment,
      paths,
    }
  }

  #headerOf(path: string, bytes: Uint8Array): SegmentHeader | null {
    const header = decodeSegmentHeader(bytes)
    if (typeof header === 'number') throw unsupportedFormatError(path, header, 1)
    if (header !== null) requireOwnStore(path, header, this.#storeId)
    return header
  }

  /**
   * Finds all intact records in the bytes of a segment.
   * @returns the end of the last intact record.
   */
  #searchRecords(bytes: Uint8Array, seedSequence: number, sequence: number): number {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    const seed = recordCrcSeed(this.#storeId, seedSequence)
    const stop = lastNonZeroOffset(bytes, SEGMENT_HEADER_BYTES)
    let end = SEGMENT_HEADER_BYTES
    for (let at = SEGMENT_HEADER_BYTES; at <= stop; at += 8) {
      const record = findRecord(bytes, view, at, seed)
      if (record === null) continue
      this.#best = higherPosition(this.#best, { term: record.term, index: record.index })
      if (this.#isAfter(sequence, at)) this.#noteAfter(record.index)
      end = record.end
      at = end - 8
    }
    return end
  }

  #isAfter(sequence: number, at: number): boolean {
    const { sequence: known, offset } = this.#after
    return sequence > known || (sequence === known && at >= offset)
  }

  #noteAfter(index: Index): void {
    this.#lowestAfter = Math.min(this.#lowestAfter, index)
  }
}

function readOrNull(files: FileSystem, path: string): Uint8Array | null {
  try {
    return files.read(path)
  } catch (error) {
    if (error instanceof StoreError && error.code === 'IO') return null
    throw error
  }
}
