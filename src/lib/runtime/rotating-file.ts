import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  openSync,
  renameSync,
  statSync,
} from 'node:fs'

const OWNER_ONLY = 0o600
const { O_WRONLY, O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants

export interface RotatingFileOptions {
  readonly path: string
  /** A file is not made larger than this, but for a single chunk that is larger by itself. */
  readonly bytesMax: number
  /** Earlier files: `path.1` is the newest of them. */
  readonly keep: number
}

/**
 * A file of lines that is rotated between two writes, so that no line is cut or lost. Where a
 * rotation fails, as it may on a full disk, lines go on into the file that is open
 * and the next write tries again. A file that somebody else has moved away is made anew at the next
 * write.
 */
export class RotatingFile {
  readonly #options: RotatingFileOptions
  #fd: number

  /** @throws {Error} when it cannot be opened, or is not a plain file. */
  constructor(options: RotatingFileOptions) {
    this.#options = options
    this.#fd = openLines(options.path)
  }

  /** The file to write so many bytes to, asked before each write while none is under way. */
  fdFor(bytes: number): number {
    try {
      const { size } = fstatSync(this.#fd)
      if (size > 0 && size + bytes > this.#options.bytesMax) this.#rotate()
      if (this.#isElsewhere()) this.#reopen()
    } catch {
      // The file that is open takes the lines until a later write can rotate.
    }
    return this.#fd
  }

  /** The same as for the last write. */
  get current(): number {
    return this.#fd
  }

  close(): void {
    closeSync(this.#fd)
  }

  /**
   * Files make room up to the first gap alone: a rotation that fails half-way must not push older
   * ones out when repeated.
   */
  #rotate(): void {
    // After a rotation that could not open the next file, the one that is open has its later name
    // already.
    if (this.#isElsewhere()) return
    const { path, keep } = this.#options
    let gap = 1
    while (gap < keep && existsSync(`${path}.${gap}`)) gap += 1
    for (let at = gap; at > 1; at -= 1) renameSync(`${path}.${at - 1}`, `${path}.${at}`)
    renameSync(path, `${path}.1`)
  }

  /** No longer the file that the path leads to. */
  #isElsewhere(): boolean {
    const there = statSync(this.#options.path, { throwIfNoEntry: false })
    const open = fstatSync(this.#fd)
    return there?.ino !== open.ino || there.dev !== open.dev
  }

  #reopen(): void {
    const next = openLines(this.#options.path)
    closeSync(this.#fd)
    this.#fd = next
  }
}

/** Never through a link, and never a pipe or device, which could hold up the thread. */
function openLines(path: string): number {
  const fd = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, OWNER_ONLY)
  try {
    if (!fstatSync(fd).isFile()) throw new Error('not a regular file')
    fchmodSync(fd, OWNER_ONLY)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}
