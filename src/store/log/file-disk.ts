import { assert } from '../../lib/assert.ts'
import {
  ENTRY_BODY_BYTES_MAX,
  ENTRY_HEADER_BYTES,
  writeEntryHeader,
} from '../../raft/entry-codec.ts'
import type { Disk, DiskWrite, Entry, HardState, Index, Position } from '../../raft/types.ts'
import type { ReplaceableEntryChains } from './replaceable-entry-chains.ts'
import { toStoreError } from '../errors.ts'
import type { FileSystem } from '../file-system.ts'
import type { MetaSlots } from './meta-slots.ts'
import { createSegment } from './create-segment.ts'
import type { Segment } from './recovery.ts'
import { SegmentPreparer } from './segment-preparer.ts'
import {
  RECORD_CHAIN_OFFSET,
  CHAIN_BYTES,
  RECORD_HEADER_BYTES,
  recordByteLength,
  recordCrcSeed,
  completeRecord,
  SEGMENT_HEADER_BYTES,
  ZERO_CHAIN,
} from './wal-format.ts'

export interface FileDiskOptions {
  /** Size of a new segment file; larger if its first record needs more. */
  readonly segmentBytes: number
  /** Size of the buffer for encoded records. A flush that is larger takes several writes. */
  readonly bufferBytes: number
  /** Bytes that the log leaves free on its file system. */
  readonly freeBytesMin: number
}

export const FILE_DISK_DEFAULTS: FileDiskOptions = {
  segmentBytes: 16 * 1024 * 1024,
  bufferBytes: 1024 * 1024,
  freeBytesMin: 64 * 1024 * 1024,
}

/** State from which a log continues: the result of recovery, or of creating a data folder. */
interface LogState {
  readonly hardState: HardState
  readonly commit: Index
  readonly boot: number
  readonly chains: ReplaceableEntryChains
  readonly segments: readonly Segment[]
  /** File descriptor of the last segment. `end` is the offset for the next record. */
  readonly fd: number
  readonly end: number
  readonly capacity: number
  readonly owed: Position | null
}

/**
 * The log in segment files (wal-format.ts). All calls block, so in a controller the log normally
 * runs on its own thread. Records are encoded as they arrive. All writes of one event loop turn
 * share one fdatasync, unless a new term or vote or a new segment requires an earlier one; at the
 * end of the turn, the disk reports their tokens in order. The first error stops the disk: it calls
 * `onFailed`, and then neither writes, retries nor reports anything, because a failed fsync may
 * have dropped the pages permanently.
 */
export class FileDisk implements Disk {
  onDurable: (token: number) => void = () => {}
  onFailed: (error: Error) => void = () => {}

  readonly #files: FileSystem
  readonly #folder: string
  readonly #storeId: Uint8Array
  readonly #meta: MetaSlots
  readonly #preparer: SegmentPreparer
  readonly #chains: ReplaceableEntryChains

  #hardState: HardState
  readonly #boot: number
  /** Commit index that Raft reported; the entries up to it may not be durable yet. */
  #commit: Index
  /** Position of the last durable entry. */
  #durableLast: Position
  #owed: Position | null

  #segments: Segment[]
  #fd: number
  #capacity: number
  #seed: number
  /**
   * Encoded bytes that are not written yet: the first `#used` bytes of the buffer belong at offset
   * `#bufferAt` of the segment.
   */
  #buffer: Buffer
  #view: DataView
  #bufferAt: number
  #used = 0
  /**
   * All bytes of the segment before this offset are synced; the current flush began at this offset.
   */
  #syncedEnd: number
  #bytesSinceStep = 0

  #tokens: number[] = []
  #isScheduled = false
  #failure: Error | null = null
  #isFailureReported = false
  #isClosed = false

  constructor(
    files: FileSystem,
    place: { readonly folder: string; readonly storeId: Uint8Array; readonly meta: MetaSlots },
    state: LogState,
    options: FileDiskOptions,
  ) {
    this.#files = files
    this.#folder = place.folder
    this.#storeId = place.storeId
    this.#meta = place.meta
    this.#preparer = new SegmentPreparer(files, place.folder, options)
    this.#hardState = state.hardState
    this.#boot = state.boot
    this.#commit = state.commit
    this.#chains = state.chains
    this.#durableLast = state.chains.last
    this.#owed = state.owed
    this.#segments = [...state.segments]
    this.#fd = state.fd
    this.#capacity = state.capacity
    this.#bufferAt = state.end
    this.#syncedEnd = state.end
    this.#seed = recordCrcSeed(this.#storeId, this.#currentSegment().sequence)
    this.#buffer = Buffer.allocUnsafeSlow(options.bufferBytes)
    this.#view = new DataView(this.#buffer.buffer)
    this.#chains.dropBefore(this.#commit)
  }

  /** The error that stopped the disk; null while the disk works. */
  get failure(): Error | null {
    return this.#failure
  }

  write(write: DiskWrite): void {
    assert(!this.#isClosed, 'a closed disk takes no writes')
    this.#do('write the log', () => {
      // @guard 04-entries-acknowledged-before-their-term-is-durable:1
      // @guard 05-commit-durable-before-its-entries:1
      if (write.hardState !== null) this.#writeHardState(write.hardState)
      this.#append(write.entries)
      this.#commit = Math.max(this.#commit, Math.min(write.commit, this.#chains.last.index))
      this.#chains.dropBefore(this.#commit)
    })
    // @guard 04-entries-acknowledged-before-their-term-is-durable:2
    this.#report(write.token)
  }

  /** Removes only whole segments, so the log may afterwards still begin before `position`. */
  compact(position: Position): void {
    assert(!this.#isClosed, 'a closed disk takes no writes')
    this.#do('compact the log', () => {
      assert(position.index <= this.#chains.last.index, 'compaction stays within the log')
      this.#commit = Math.max(this.#commit, position.index)
      const first = this.#firstSegmentFor(position.index)
      if (first <= 0) return
      const removed = this.#segments.slice(0, first)
      this.#segments = this.#segments.slice(first)
      // The meta slots are written before files are removed: after a crash in between, recovery
      // recognizes the old files as leftovers.
      this.#writeMeta()
      for (const segment of removed) this.#files.remove(segment.path)
    })
    this.#schedule()
  }

  reset(position: Position, token: number): void {
    assert(!this.#isClosed, 'a closed disk takes no writes')
    this.#do('reset the log', () => {
      this.#sync()
      const removed = [...this.#segments]
      this.#beginSegment(position, ZERO_CHAIN, { isReset: true, recordBytes: 0 })
      this.#segments = this.#segments.slice(-1)
      this.#chains.restart(position, ZERO_CHAIN)
      this.#commit = position.index
      this.#durableLast = position
      // This write makes the new segment the log. After a crash before this write, recovery would
      // remove the segment as an unfinished reset.
      this.#writeMeta()
      for (const segment of removed) this.#files.remove(segment.path)
    })
    this.#report(token)
  }

  settle(owed: Position | null): void {
    assert(!this.#isClosed, 'a closed disk takes no writes')
    this.#do('record the missing tail of the log', () => {
      this.#owed = owed
      this.#writeMeta()
    })
  }

  /**
   * Writes, syncs and reports pending data immediately, instead of at the end of the event loop
   * turn.
   */
  flush(): void {
    this.#isScheduled = false
    this.#do('sync the log', () => this.#sync())
    if (this.#failure !== null) {
      this.#reportFailure(this.#failure)
      return
    }
    const tokens = this.#tokens
    this.#tokens = []
    for (const token of tokens) this.onDurable(token)
    this.#do('prepare a segment of the log', () => this.#prepare())
    if (this.#failure !== null) this.#reportFailure(this.#failure)
  }

  close(): Promise<void> {
    this.closeNow()
    return Promise.resolve()
  }

  /**
   * Flushes, and records in the meta slots that everything is synced. The caller may repeat the
   * call.
   */
  closeNow(): void {
    if (this.#isClosed) return
    this.flush()
    this.#isClosed = true
    this.#do('close the log', () => this.#writeMeta(true))
    if (this.#failure !== null) this.#reportFailure(this.#failure)
    this.#preparer.close()
    this.#files.close(this.#fd)
    this.#meta.close()
  }

  /** Runs `work` unless the disk has already failed; a system error stops the disk. */
  #do(doing: string, work: () => void): void {
    if (this.#failure !== null) return
    try {
      work()
    } catch (error) {
      const failure = toStoreError(error, doing, this.#folder)
      // A failed assertion also stops the disk, so that it writes nothing more. The caller gets the
      // error immediately.
      this.#failure = failure
      this.#schedule()
      if (failure.name === 'AssertionError') throw failure
    }
  }

  #report(token: number): void {
    this.#tokens.push(token)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isClosed) return
    this.#isScheduled = true
    setImmediate(() => {
      if (this.#isScheduled && !this.#isClosed) this.flush()
    })
  }

  #reportFailure(error: Error): void {
    if (this.#isFailureReported) return
    this.#isFailureReported = true
    this.#tokens = []
    this.onFailed(error)
  }

  #currentSegment(): Segment {
    const segment = this.#segments.at(-1)
    assert(segment !== undefined, 'a log has at least one segment')
    return segment
  }

  // @guard 05-commit-durable-before-its-entries:2
  #writeHardState(hardState: HardState): void {
    assert(hardState.term >= this.#hardState.term, 'the term never runs back')
    // The disk carries out writes in order: earlier entries must be durable before the term
    // changes.
    // @guard 02-term-and-vote-in-two-writes
    this.#sync()
    this.#hardState = hardState
    this.#writeMeta()
  }

  // @guard 05-commit-durable-before-its-entries:3
  #writeMeta(isClosed = false): void {
    const first = this.#segments[0]
    assert(first !== undefined, 'a log has at least one segment')
    this.#meta.write({
      hardState: this.#hardState,
      // The commit index in the page is at most the index of the last durable entry: at a start, it
      // must not be beyond the end of the log (bug 5 in `test/zoo/`).
      commit: Math.min(this.#commit, this.#durableLast.index),
      boot: this.#boot,
      firstSegment: first.sequence,
      synced: { segment: this.#currentSegment().sequence, offset: this.#syncedEnd },
      last: this.#durableLast,
      isClosed,
      owed: this.#owed,
    })
  }

  #append(entries: readonly Entry[]): void {
    const first = entries[0]
    if (first === undefined) return
    const last = this.#chains.last
    assert(first.index > this.#commit, 'a committed entry is never replaced')
    assert(first.index <= last.index + 1, 'entries leave no gap')
    if (first.index <= last.index) {
      this.#chains.truncateAfter(first.index - 1)
      if (first.index <= this.#durableLast.index) this.#durableLast = this.#chains.last
      // If the replaced entries reach into older segments, a new segment starts, so that the index
      // in a segment's header is lower than the indexes of all its records.
      if (first.index <= this.#currentSegment().previousIndex) this.#changeSegment(0)
    }
    for (const entry of entries) this.#appendOne(entry)
  }

  #appendOne(entry: Entry): void {
    const previous = this.#chains.last
    assert(entry.index === previous.index + 1, 'entries are consecutive')
    assert(entry.term >= previous.term, 'terms do not run back along the log')
    assert(entry.data.length <= ENTRY_BODY_BYTES_MAX, 'a body is within its limit')
    const length = recordByteLength(entry.data.length)
    if (this.#bufferAt + this.#used + length > this.#capacity) this.#changeSegment(length)
    if (this.#used + length > this.#buffer.length) this.#makeRoom(length)
    const at = this.#used
    this.#buffer.set(entry.data, at + RECORD_HEADER_BYTES)
    writeEntryHeader(this.#view, at + RECORD_HEADER_BYTES - ENTRY_HEADER_BYTES, entry)
    completeRecord(this.#buffer, this.#view, at, {
      bodyLength: entry.data.length,
      previousChain: this.#chains.chainAt(previous.index),
      flushDistance: this.#bufferAt + at - this.#syncedEnd,
      seed: this.#seed,
    })
    this.#chains.push(
      entry.term,
      this.#buffer.subarray(at + RECORD_CHAIN_OFFSET, at + RECORD_CHAIN_OFFSET + CHAIN_BYTES),
    )
    this.#used += length
  }

  #makeRoom(length: number): void {
    this.#handOver()
    if (length <= this.#buffer.length) return
    this.#buffer = Buffer.allocUnsafeSlow(length)
    this.#view = new DataView(this.#buffer.buffer)
  }

  /** Writes the buffer to the file; the bytes are not durable yet. */
  #handOver(): void {
    if (this.#used === 0) return
    const { path } = this.#currentSegment()
    this.#files.write(this.#fd, path, this.#buffer.subarray(0, this.#used), this.#bufferAt)
    this.#bufferAt += this.#used
    this.#bytesSinceStep += this.#used
    this.#used = 0
  }

  #sync(): void {
    this.#handOver()
    if (this.#bufferAt === this.#syncedEnd) return
    this.#files.sync(this.#fd, this.#currentSegment().path)
    this.#syncedEnd = this.#bufferAt
    this.#durableLast = this.#chains.last
  }

  /** Continues in a new segment after the last entry. */
  #changeSegment(recordLength: number): void {
    const previous = this.#chains.last
    this.#handOver()
    if (this.#bufferAt !== this.#syncedEnd) {
      this.#files.sync(this.#fd, this.#currentSegment().path)
      this.#syncedEnd = this.#bufferAt
    }
    this.#durableLast = previous
    const chain = this.#chains.chainAt(previous.index).slice()
    this.#beginSegment(previous, chain, { isReset: false, recordBytes: recordLength })
    this.#writeMeta()
  }

  /**
   * Starts a new segment. The previous segment must be synced already. When the function returns,
   * the new segment is durable under its name.
   */
  #beginSegment(
    previous: Position,
    previousChain: Uint8Array,
    options: { isReset: boolean; recordBytes: number },
  ): void {
    const sequence = this.#currentSegment().sequence + 1
    const storeId = this.#storeId
    const segment = { storeId, sequence, previous, previousChain, ...options }
    const made = createSegment(this.#files, this.#folder, this.#preparer, segment)
    this.#files.close(this.#fd)
    this.#segments.push({ path: made.path, sequence, previousIndex: previous.index })
    this.#fd = made.fd
    this.#capacity = made.bytes
    this.#seed = recordCrcSeed(storeId, sequence)
    this.#bufferAt = SEGMENT_HEADER_BYTES
    this.#syncedEnd = SEGMENT_HEADER_BYTES
  }

  /**
   * Place, in the list of segments, of the newest segment that may become the first one: it begins
   * at `index + 1` or earlier, and no later segment begins before it. 0 if there is none.
   */
  #firstSegmentFor(index: Index): number {
    let lowest = Infinity
    for (let position = this.#segments.length - 1; position >= 0; position -= 1) {
      const previousIndex = this.#segments[position]?.previousIndex ?? Infinity
      if (previousIndex <= index && previousIndex <= lowest) return position
      lowest = Math.min(lowest, previousIndex)
    }
    return 0
  }

  #prepare(): void {
    if (this.#bytesSinceStep === 0) return
    this.#preparer.step(this.#bytesSinceStep)
    this.#bytesSinceStep = 0
  }
}
