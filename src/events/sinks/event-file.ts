import { constants } from 'node:fs'
import { type FileHandle, open, rename, stat } from 'node:fs/promises'

import { type EventPosition, parsePosition } from '../../ports/events.ts'

const OWNER_ONLY = 0o600
const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants
/** Enough for the last event of a file, unless that holds a very large record. */
const TAIL_BYTES = 2 * 1024 * 1024
const EVENT_ID = /"event_id":"([^"]{1,128})"\}$/

export interface EventFileOptions {
  readonly path: string
  readonly bytesMax: number
  /** Earlier files: `path.1` is the newest of them. */
  readonly keep: number
  /** Whether what is written is on the disk before more is. */
  readonly isSynced: boolean
}

/**
 * A file of lines that is rotated between two writes. A write that was cut short goes on where it
 * ended, so no line is broken.
 */
export class EventFile {
  readonly #options: EventFileOptions
  #handle: FileHandle
  #bytes: number

  private constructor(options: EventFileOptions, handle: FileHandle, bytes: number) {
    this.#options = options
    this.#handle = handle
    this.#bytes = bytes
  }

  /** @throws the error of the system; or when not a regular file. */
  static async open(options: EventFileOptions): Promise<EventFile> {
    const { handle, bytes } = await openLines(options.path)
    return new EventFile(options, handle, bytes)
  }

  /**
   * Of the last event in the file, or in the one before it; null when there is none that can be
   * read.
   */
  async lastPosition(): Promise<EventPosition | null> {
    const own = await lastPositionIn(this.#handle, this.#bytes)
    if (own !== null) return own
    try {
      const { handle, bytes } = await openLines(`${this.#options.path}.1`, 0)
      try {
        return await lastPositionIn(handle, bytes)
      } finally {
        await handle.close()
      }
    } catch {
      return null
    }
  }

  /**
   * @returns how much of it was written: all, or less where the disk is full.
   * @throws when nothing could be.
   */
  async write(lines: Buffer): Promise<number> {
    if (this.#bytes > 0 && this.#bytes + lines.length > this.#options.bytesMax) await this.#rotate()
    const { bytesWritten } = await this.#handle.write(lines)
    this.#bytes += bytesWritten
    if (this.#options.isSynced) await this.#handle.datasync()
    return bytesWritten
  }

  async close(): Promise<void> {
    await this.#handle.close()
  }

  /**
   * Files make room up to the first gap alone, so that a rotation that fails half-way pushes no
   * older one out when repeated.
   */
  async #rotate(): Promise<void> {
    const { path, keep } = this.#options
    try {
      let gap = 1
      while (gap < keep && (await isThere(`${path}.${gap}`))) gap += 1
      for (let at = gap; at > 1; at -= 1) await rename(`${path}.${at - 1}`, `${path}.${at}`)
      await rename(path, `${path}.1`)
    } catch {
      // Somebody may have moved the file away; where it is still there, lines go on into it and the
      // next write tries again.
      if (await isThere(path)) return
    }
    const { handle, bytes } = await openLines(path)
    await this.#handle.close()
    this.#handle = handle
    this.#bytes = bytes
  }
}

async function isThere(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  )
}

/** Never through a link, and never a pipe or device, which could hold up a thread. */
async function openLines(
  path: string,
  create = O_CREAT,
): Promise<{ readonly handle: FileHandle; readonly bytes: number }> {
  const flags = O_RDWR | O_APPEND | create | O_NOFOLLOW | O_NONBLOCK
  const handle = await open(path, flags, OWNER_ONLY)
  try {
    const found = await handle.stat()
    if (!found.isFile()) throw new Error(`${path} is not a plain file`)
    await handle.chmod(OWNER_ONLY)
    return { handle, bytes: found.size }
  } catch (error) {
    await handle.close()
    throw error
  }
}

async function lastPositionIn(handle: FileHandle, bytes: number): Promise<EventPosition | null> {
  const length = Math.min(bytes, TAIL_BYTES)
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, bytes - length)
  const lines = buffer.subarray(0, bytesRead).toString('utf8').split('\n')
  for (const line of lines.reverse()) {
    const id = EVENT_ID.exec(line)?.[1]
    if (id !== undefined) return parsePosition(id)
  }
  return null
}
