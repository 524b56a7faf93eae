import type { Index, Position } from '../../raft/types.ts'
import { newerFormat, StoreError } from '../errors.ts'
import type { FileSystem } from '../file-system.ts'
import type { Meta } from './meta-slots.ts'
import { lastNonZero, requireOwn, type LogPlace } from './recovery.ts'
import {
  decodeSegmentHeader,
  findRecord,
  parseSegmentName,
  recordSeed,
  SEGMENT_HEADER_BYTES,
  type SegmentHeader,
} from './wal-format.ts'

/** Evidence in the files of a damaged log of where it ended. */
export interface LogEvidence {
  /** The best position, by term and then by index, that anything speaks of. */
  readonly best: Position
  /** Whether the log certainly went no further than that. */
  readonly isEndKnown: boolean
  /**
   * The lowest index that was written after the place in question; entries from there on were
   * replaced.
   */
  readonly lowestAfter: Index
  /** Highest sequence of a segment that is there or was. */
  readonly newestSegment: number
  /** Paths of the segments, oldest first. */
  readonly paths: readonly string[]
}

export function laterOf(a: Position, b: Position): Position {
  if (a.term !== b.term) return a.term > b.term ? a : b
  return a.index >= b.index ? a : b
}

/**
 * Looks at every byte of every segment for headers and records that are whole.
 *
 * The end is known when the log was closed in order and the meta slots tell its last position, or
 * when the newest segment is there with all that is known to have been synced, and nothing but
 * zeros behind. What was flushed after that and has become zeros leaves no trace, in a damaged log
 * as in any other: the peers, who remember what was acknowledged to them, are the ones to notice
 * (cluster/witness.ts).
 *
 * @param after what `lowestAfter` is told of.
 * @throws {StoreError} FOREIGN or NEWER_FORMAT.
 */
export function gatherEvidence(
  files: FileSystem,
  folder: string,
  { storeId, meta, after }: { storeId: Uint8Array; meta: Meta; after: LogPlace },
): LogEvidence {
  const search = new Search(storeId, meta, after)
  const names = files.exists(folder) ? files.list(folder) : []
  const paths: { path: string; sequence: number }[] = []
  for (const name of names) {
    const parsed = parseSegmentName(name)
    if (parsed === null) continue
    const path = `${folder}/${name}`
    paths.push({ path, sequence: parsed.sequence })
    if (parsed.sequence >= meta.firstSegment) search.look(files, path, parsed)
  }
  paths.sort((a, b) => a.sequence - b.sequence)
  return search.result(paths.map(({ path }) => path))
}

class Search {
  readonly #storeId: Uint8Array
  readonly #meta: Meta
  readonly #after: LogPlace
  #best: Position
  #lowestAfter = Infinity
  /** Newest of the segments that count, and whether the end of that one is intact. */
  #newestCounted = 0
  #isNewestIntact = false
  #newestSegment: number

  constructor(storeId: Uint8Array, meta: Meta, after: LogPlace) {
    this.#storeId = storeId
    this.#meta = meta
    this.#after = after
    const nothing = { term: 0, index: 0 }
    this.#best = laterOf(meta.last ?? nothing, meta.owed ?? nothing)
    this.#newestSegment = Math.max(meta.firstSegment, meta.synced.segment)
  }

  look(files: FileSystem, path: string, name: { firstIndex: Index; sequence: number }): void {
    const { sequence } = name
    this.#newestSegment = Math.max(this.#newestSegment, sequence)
    const bytes = readOrNull(files, path)
    const header = bytes === null ? null : this.#headerOf(path, bytes)
    // Segments of a reset, or a repair, that never came to count say nothing.
    if (header?.isReset === true && sequence > this.#meta.synced.segment) return
    if (sequence > this.#after.sequence) this.#noteAfter(name.firstIndex)
    const isNewest = sequence >= this.#newestCounted
    if (isNewest) {
      this.#newestCounted = sequence
      this.#isNewestIntact = false
    }
    if (bytes === null) return
    if (header !== null) this.#best = laterOf(this.#best, header.previous)
    // A misdirected write may have brought the content of another segment.
    const end = this.#searchRecords(bytes, header?.sequence ?? sequence, sequence)
    const { synced } = this.#meta
    const isLong = sequence !== synced.segment || end >= synced.offset
    const isWhole = header !== null && bytes.length >= header.fileBytes
    if (isNewest) {
      this.#isNewestIntact =
        isWhole && header.sequence === sequence && isLong && lastNonZero(bytes, end) < end
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
    if (typeof header === 'number') throw newerFormat(path, header, 1)
    if (header !== null) requireOwn(path, header, this.#storeId)
    return header
  }

  /** @returns the end of the last whole record. */
  #searchRecords(bytes: Uint8Array, seedSequence: number, sequence: number): number {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    const seed = recordSeed(this.#storeId, seedSequence)
    const stop = lastNonZero(bytes, SEGMENT_HEADER_BYTES)
    let end = SEGMENT_HEADER_BYTES
    for (let at = SEGMENT_HEADER_BYTES; at <= stop; at += 8) {
      const record = findRecord(bytes, view, at, seed)
      if (record === null) continue
      this.#best = laterOf(this.#best, { term: record.term, index: record.index })
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
