import { constants, fdatasync, write } from 'node:fs'
import { open } from 'node:fs/promises'
import { promisify } from 'node:util'

import { RotatingFile, type RotatingFileOptions } from '../../lib/runtime/rotating-file.ts'
import { type EventPosition, parsePosition } from '../../ports/events.ts'

const writeTo = promisify(write)
const syncData = promisify(fdatasync)
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
 * A file of events. After a partial write, the next write continues at the same byte, so that no
 * line is broken.
 */
export class EventFile {
  readonly #options: EventFileOptions
  readonly #file: RotatingFile

  /**
   * Opens the file.
   * @throws the system's error, or an error if the path is not a regular file.
   */
  constructor(options: EventFileOptions) {
    this.#options = options
    this.#file = new RotatingFile(options)
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
   * @returns the number of bytes written; fewer than requested if the disk is full.
   * @throws when nothing could be written, or the write could not be synced.
   */
  async write(lines: Buffer): Promise<number> {
    const fd = this.#file.fdFor(lines.length)
    const { bytesWritten } = await writeTo(fd, lines)
    if (this.#options.isSynced) await syncData(fd)
    return bytesWritten
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
