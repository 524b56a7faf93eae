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
  /** Maximum file size; a single larger write may exceed it. */
  readonly bytesMax: number
  /** Number of earlier files that are retained; `path.1` is the newest. */
  readonly keep: number
}

/**
 * A file of lines that is rotated only between two writes, so that no line is lost, and none is cut
 * if each write contains whole lines. If a rotation fails, for example because the disk is full,
 * lines continue in the open file and the next write tries to rotate again. If another program has
 * moved the file away, the next write creates a new one.
 */
export class RotatingFile {
  readonly #options: RotatingFileOptions
  #fd: number

  /** @throws {Error} when the file cannot be opened or is not a regular file. */
  constructor(options: RotatingFileOptions) {
    this.#options = options
    this.#fd = openLines(options.path)
  }

  /**
   * The file descriptor for the next write of `bytes` bytes. Call it before each write, while no
   * write is in progress.
   */
  fdFor(bytes: number): number {
    try {
      const { size } = fstatSync(this.#fd)
      if (size > 0 && size + bytes > this.#options.bytesMax) this.#rotate()
      if (this.#isElsewhere()) this.#reopen()
    } catch {
      // If the rotation fails, lines go to the open file until a later write can rotate.
    }
    return this.#fd
  }

  /** The file descriptor of the last write. */
  get current(): number {
    return this.#fd
  }

  close(): void {
    closeSync(this.#fd)
  }

  /**
   * Renames each file to the next number, but only up to the first unused number: a failed rotation
   * that is repeated must not drop older files.
   */
  #rotate(): void {
    // If an earlier rotation could not open the next file, the open file already has its rotated
    // name.
    if (this.#isElsewhere()) return
    const { path, keep } = this.#options
    let gap = 1
    while (gap < keep && existsSync(`${path}.${gap}`)) gap += 1
    for (let at = gap; at > 1; at -= 1) renameSync(`${path}.${at - 1}`, `${path}.${at}`)
    renameSync(path, `${path}.1`)
  }

  /**
   * Whether the path does not name the open file, because another program or an earlier rotation
   * renamed the file.
   */
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

/**
 * Opens a file without following links; refuses pipes and devices, which could block the thread.
 */
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
