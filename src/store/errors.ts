import { AssertionError } from '../lib/assert.ts'
import { errorCode, errorMessage } from '../lib/error-code.ts'

/**
 * CORRUPT: data on disk contradicts itself or something that this member acknowledged. VOTE_LOST:
 * the stored term and vote are lost, so this disk must not vote again. FOREIGN: the files belong to
 * another store. BAD_SNAPSHOT: received bytes are invalid. NEWER_FORMAT: a newer program, or one
 * from before the first release, wrote the data. The names of the other codes explain them.
 */
export type StoreErrorCode =
  | 'CORRUPT'
  | 'VOTE_LOST'
  | 'FOREIGN'
  | 'NEWER_FORMAT'
  | 'IN_USE'
  | 'NO_SPACE'
  | 'NOT_WRITABLE'
  | 'MISSING'
  | 'NOT_EMPTY'
  | 'BAD_SNAPSHOT'
  | 'CLOSED'
  | 'IO'

/**
 * An error for the operator. Its message has one or two sentences that name the problem, its place
 * and, for most codes, the remedy. `code` is stable, the message is not.
 */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly code: StoreErrorCode
  /** The file or folder with the problem. */
  readonly path: string
  /**
   * For CORRUPT and VOTE_LOST, the problem without the remedy, for callers that know a different
   * remedy; for other codes, the message.
   */
  readonly finding: string

  constructor(
    code: StoreErrorCode,
    path: string,
    message: string,
    cause?: unknown,
    finding: string = message,
  ) {
    super(message, cause === undefined ? {} : { cause })
    this.code = code
    this.path = path
    this.finding = finding
  }
}

const REBUILD =
  'nothing was changed on disk; keep a copy of the folder, then replace this member so that it is rebuilt from its peers (flotilla cluster replace)'

/**
 * The error for damaged data.
 * @param what completes the message `<path>: <what>`.
 * @param offset offset of the damage in bytes; null: the whole file.
 */
export function corruptError(path: string, what: string, offset: number | null = null): StoreError {
  const where = offset === null ? path : `${path} at byte ${offset}`
  const finding = `${where}: ${what}`
  return new StoreError('CORRUPT', path, `${finding}; ${REBUILD}.`, undefined, finding)
}

/**
 * The error for two unreadable slots of term and vote, after which this disk must not vote again.
 */
export function voteLostError(path: string): StoreError {
  const finding = `${path}: neither it nor meta.1 can be read, so the term and vote of this member are lost`
  const message = `${finding}; nothing changed on disk. With cluster.seeds set, a start requests re-admission with an empty data folder; otherwise restore the folder from an intact copy.`
  return new StoreError('VOTE_LOST', path, message, undefined, finding)
}

export function isCorruptStoreError(error: unknown): error is StoreError {
  return error instanceof StoreError && error.code === 'CORRUPT'
}

export function unsupportedFormatError(path: string, found: number, known: number): StoreError {
  return new StoreError(
    'NEWER_FORMAT',
    path,
    found > known
      ? `${path} has format ${found} and this program reads up to ${known}; run the version that wrote it, or a later one.`
      : `${path} has format ${found}, of a version before the first release, and this program reads format ${known}; create the cluster again.`,
  )
}

/**
 * Turns the error of a failed system call into an error for the operator. `doing` completes the
 * sentence "cannot …". Returns a StoreError or AssertionError unchanged.
 */
export function toStoreError(error: unknown, doing: string, path: string): Error {
  if (error instanceof StoreError || error instanceof AssertionError) return error
  const code = errorCode(error)
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG':
      return new StoreError(
        'NO_SPACE',
        path,
        `cannot ${doing} ${path}: the disk or quota is full; free space and start again.`,
        error,
      )
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new StoreError(
        'NOT_WRITABLE',
        path,
        `cannot ${doing} ${path}: ${code}; give the user that runs the controller write access to it.`,
        error,
      )
    case 'ENOENT':
    case 'ENOTDIR':
      return new StoreError('MISSING', path, `cannot ${doing} ${path}: it does not exist.`, error)
    default: {
      const detail = errorMessage(error)
      return new StoreError('IO', path, `cannot ${doing} ${path}: ${detail}.`, error)
    }
  }
}
