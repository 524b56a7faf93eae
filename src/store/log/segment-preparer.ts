import { StoreError } from '../errors.ts'
import type { FileSystem } from '../file-system.ts'

export const PREPARED_SEGMENT_FILE = 'next.tmp'
const SLICE_BYTES = 1024 * 1024
const STEP_BYTES_MIN = 64 * 1024
const STEP_BYTES_MAX = 4 * SLICE_BYTES
const ZEROS = new Uint8Array(SLICE_BYTES)

/** A file of zeros that is open for writing and has at least the requested size. */
interface PreparedFile {
  readonly fd: number
  readonly path: string
  readonly bytes: number
}

/**
 * Prepares the next segment file in advance by filling it with zeros, a part after each flush, so
 * that neither a segment change nor a flush waits for 16 MiB of zeros. Leaves `freeBytesMin` on the
 * file system free: the log stops before the disk is full, because a cleanup also needs space.
 */
export class SegmentPreparer {
  readonly #files: FileSystem
  readonly #folder: string
  readonly #path: string
  readonly #segmentBytes: number
  readonly #freeBytesMin: number
  #fd: number | null = null
  #filledBytes = 0

  constructor(
    files: FileSystem,
    folder: string,
    options: { segmentBytes: number; freeBytesMin: number },
  ) {
    this.#files = files
    this.#folder = folder
    this.#path = `${folder}/${PREPARED_SEGMENT_FILE}`
    this.#segmentBytes = options.segmentBytes
    this.#freeBytesMin = options.freeBytesMin
  }

  /**
   * Writes about twice as many zeros as the log has consumed bytes, within limits, so that the next
   * file is ready when the current file is half full.
   */
  step(consumedBytes: number): void {
    if (this.#filledBytes >= this.#segmentBytes) return
    // When space is short, `step` prepares nothing: the log uses the current segment to its end,
    // and only `take` refuses.
    const freeBytesNeeded = this.#freeBytesMin + this.#segmentBytes
    if (this.#fd === null && this.#files.freeBytes(this.#folder) < freeBytesNeeded) return
    const stepBytes = Math.min(Math.max(consumedBytes * 2, STEP_BYTES_MIN), STEP_BYTES_MAX)
    this.#fillTo(Math.min(this.#segmentBytes, this.#filledBytes + stepBytes))
  }

  /**
   * Returns the prepared file, after filling the rest of it.
   * @throws {StoreError} NO_SPACE when less than `freeBytesMin` would remain free.
   */
  take(bytesMin: number): PreparedFile {
    const bytes = Math.max(bytesMin, this.#segmentBytes, this.#filledBytes)
    const missingBytes = bytes - this.#filledBytes
    const freeBytes = missingBytes === 0 ? 0 : this.#files.freeBytes(this.#folder)
    if (missingBytes > 0 && freeBytes < this.#freeBytesMin + missingBytes) {
      throw new StoreError(
        'NO_SPACE',
        this.#folder,
        `the log in ${this.#folder} needs ${missingBytes} bytes and the disk has ${freeBytes} free, of which ${this.#freeBytesMin} are kept in reserve (log.lowSpaceBytes); free space and start again.`,
      )
    }
    this.#fillTo(bytes)
    const fd = this.#opened()
    this.#files.sync(fd, this.#path)
    this.#fd = null
    this.#filledBytes = 0
    return { fd, path: this.#path, bytes }
  }

  close(): void {
    if (this.#fd !== null) this.#files.close(this.#fd)
    this.#fd = null
  }

  #opened(): number {
    if (this.#fd !== null) return this.#fd
    this.#files.remove(this.#path)
    this.#fd = this.#files.open(this.#path, true)
    this.#filledBytes = 0
    return this.#fd
  }

  /** Writes zeros up to `end`. It syncs after each slice, so that the final sync is short. */
  #fillTo(end: number): void {
    const fd = this.#opened()
    let unsyncedBytes = this.#filledBytes % SLICE_BYTES
    while (this.#filledBytes < end) {
      const length = Math.min(SLICE_BYTES, end - this.#filledBytes)
      this.#files.write(fd, this.#path, ZEROS.subarray(0, length), this.#filledBytes)
      this.#filledBytes += length
      unsyncedBytes += length
      if (unsyncedBytes < SLICE_BYTES) continue
      this.#files.sync(fd, this.#path)
      unsyncedBytes = 0
    }
  }
}
