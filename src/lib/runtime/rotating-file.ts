import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fdatasync,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  statSync,
  write,
  writeSync,
} from 'node:fs'

const OWNER_ONLY = 0o600
const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants
/** Code of the character that ends a line. */
export const NEWLINE = 10
/** Bytes that end an incomplete line. */
export const NEWLINE_BYTES: Buffer = Buffer.of(NEWLINE)

/** The file system calls that are used to write lines. */
export interface LineFile {
  write(
    fd: number,
    bytes: Buffer,
    done: (error: NodeJS.ErrnoException | null, written: number) => void,
  ): void
  /** @returns the number of bytes written. */
  writeSync(fd: number, bytes: Buffer): number
  /** Syncs the written bytes to disk. */
  sync(fd: number, done: (error: NodeJS.ErrnoException | null) => void): void
}

/** The file system calls of the operating system. */
export const systemLineFile: LineFile = { write, writeSync, sync: fdatasync }

export interface RotatingFileOptions {
  readonly path: string
  /** Maximum file size; a single larger write may exceed it. */
  readonly bytesMax: number
  /** Number of earlier files that are retained; `path.1` is the newest. */
  readonly keep: number
}

/**
 * A file of lines that is rotated only between two writes, so that no line is lost. If a rotation
 * fails, for example because the disk is full, lines continue in the open file and the next write
 * tries to rotate again. If another program has moved the file away, the next write creates a new
 * one. A write may end within a line: the writer then either completes the line in the file of
 * `current`, or abandons it and begins the next line with a newline if `isMidLine` is still set
 * after `fdFor`.
 */
export class RotatingFile {
  readonly #options: RotatingFileOptions
  #fd: number
  /**
   * Whether the file of `current` ends with an incomplete line, which this process or an earlier
   * one wrote. The writer must set it after each write.
   */
  isMidLine: boolean

  /** @throws {Error} when the file cannot be opened or is not a regular file. */
  constructor(options: RotatingFileOptions) {
    this.#options = options
    const { fd, isMidLine } = openLines(options.path)
    this.#fd = fd
    this.isMidLine = isMidLine
  }

  /**
   * The file descriptor for the next write of `bytes` bytes. Call it before each write, while no
   * write is in progress.
   */
  fdFor(bytes: number): number {
    try {
      const { size } = fstatSync(this.#fd)
      // Another program may have truncated the file.
      if (size === 0) this.isMidLine = false
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
    const { fd, isMidLine } = openLines(this.#options.path)
    closeSync(this.#fd)
    this.#fd = fd
    this.isMidLine = isMidLine
  }
}

/**
 * Opens a file without following links; refuses pipes and devices, which could block the thread.
 */
function openLines(path: string): { readonly fd: number; readonly isMidLine: boolean } {
  const fd = openSync(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, OWNER_ONLY)
  try {
    const status = fstatSync(fd)
    if (!status.isFile()) throw new Error('not a regular file')
    fchmodSync(fd, OWNER_ONLY)
    return { fd, isMidLine: endsWithinLine(fd, status.size) }
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

function endsWithinLine(fd: number, size: number): boolean {
  const last = Buffer.alloc(1)
  return size > 0 && readSync(fd, last, 0, 1, size - 1) === 1 && last[0] !== NEWLINE
}
