import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

import {
  type LineFile,
  NEWLINE,
  NEWLINE_BYTES,
  RotatingFile,
  type RotatingFileOptions,
  systemLineFile,
} from '../../lib/runtime/rotating-file.ts'
import { type EventPosition, parsePosition } from '../../ports/events.ts'

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
/**
 * Number of bytes at the end of a file that are read to find the file's last event. This number is
 * enough unless the last event contains a very large record.
 */
const TAIL_BYTES = 2 * 1024 * 1024
const EVENT_ID = /"event_id":"([^"]{1,128})"\}$/

export interface EventFileOptions extends RotatingFileOptions {
  /** True if each write is synced to disk before the next write. */
  readonly isSynced: boolean
}

/**
 * A file of events. After a partial write, the next write completes the incomplete line in the same
 * file, so that no line is broken, even if the file is rotated meanwhile.
 */
export class EventFile {
  readonly #options: EventFileOptions
  readonly #file: RotatingFile
  readonly #disk: Pick<LineFile, 'write' | 'sync'>
  /** Whether the next write begins with the rest of the last line in the file. */
  #isContinued = false

  /**
   * Opens the file.
   * @param disk file system calls; by default those of the operating system.
   * @throws the system's error, or an error if the path is not a regular file.
   */
  constructor(options: EventFileOptions, disk: Pick<LineFile, 'write' | 'sync'> = systemLineFile) {
    this.#options = options
    this.#file = new RotatingFile(options)
    this.#disk = disk
  }

  /**
   * Position of the last event in the file or, if it has none, in the previous file; null if
   * neither file has a readable event.
   */
  async lastPosition(): Promise<EventPosition | null> {
    const { path } = this.#options
    return (await lastPositionIn(path)) ?? (await lastPositionIn(`${path}.1`).catch(() => null))
  }

  /**
   * Writes lines. After a partial write, the next call must pass the remaining bytes.
   * @returns the number of bytes written; fewer than requested if the disk is full, or if the rest
   * of the lines belongs in the next file.
   * @throws when nothing could be written, or the write could not be synced; the next call must
   * then pass the same bytes.
   */
  async write(lines: Buffer): Promise<number> {
    const file = this.#file
    if (this.#isContinued) {
      return await this.#put(file.current, lines.subarray(0, lines.indexOf(NEWLINE) + 1))
    }
    const fd = file.fdFor(lines.length + (file.isMidLine ? 1 : 0))
    // Ends a line that an earlier process, or a write that could not be synced, left incomplete.
    if (file.isMidLine) await this.#put(fd, NEWLINE_BYTES)
    return await this.#put(fd, lines)
  }

  async #put(fd: number, bytes: Buffer): Promise<number> {
    const file = this.#file
    const written = await new Promise<number>((resolve, reject) => {
      this.#disk.write(fd, bytes, (error, count) =>
        error === null ? resolve(count) : reject(error),
      )
    })
    if (written > 0) file.isMidLine = bytes[written - 1] !== NEWLINE
    this.#isContinued = false
    if (this.#options.isSynced) {
      await new Promise<void>((resolve, reject) => {
        this.#disk.sync(fd, (error) => (error === null ? resolve() : reject(error)))
      })
    }
    this.#isContinued = file.isMidLine
    return written
  }

  close(): void {
    this.#file.close()
  }
}

async function lastPositionIn(path: string): Promise<EventPosition | null> {
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const { size } = await handle.stat()
    const length = Math.min(size, TAIL_BYTES)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length)
    const lines = buffer.subarray(0, bytesRead).toString('utf8').split('\n')
    for (const line of lines.reverse()) {
      const id = EVENT_ID.exec(line)?.[1]
      if (id !== undefined) return parsePosition(id)
    }
    return null
  } finally {
    await handle.close()
  }
}
