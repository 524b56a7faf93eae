import { ClassicLevel } from 'classic-level'
import { toStoreError, corruptError, StoreError } from '../errors.ts'
import { errorCode, errorMessage } from '../../lib/error-code.ts'

export type LevelDatabase = ClassicLevel<string, string>

/**
 * A small cache is enough: the controller reads the state once at start, and then only writes to
 * LevelDB, except when it reads a whole snapshot.
 */
const CACHE_BYTES = 1024 * 1024
/**
 * Limits the memory for mapped files: LevelDB maps open files, so reading a large state once for a
 * peer would make all of it resident. These are the smallest values that LevelDB accepts, 64 MiB
 * together.
 */
const OPEN_FILES_MAX = 64
const FILE_BYTES_MAX = 1024 * 1024
/**
 * Size of each of LevelDB's two in-memory tables, and of the files that LevelDB writes from them.
 */
const WRITE_BUFFER_BYTES = 1024 * 1024

/**
 * Turns a LevelDB error into an error for the operator. LevelDB reports a full disk only in its
 * message, with the text of strerror.
 */
export function toLevelError(error: unknown, doing: string, path: string): Error {
  if (error instanceof StoreError) return error
  const inner =
    errorCode(error) === 'LEVEL_DATABASE_NOT_OPEN' &&
    error instanceof Error &&
    error.cause instanceof Error
      ? error.cause
      : error
  const text = errorMessage(inner)
  const code = errorCode(inner)
  if (code === 'LEVEL_CORRUPTION') return corruptError(path, `the state is damaged (${text})`)
  if (code === 'LEVEL_LOCKED') {
    return new StoreError('IN_USE', path, `${path} is in use by another process.`, inner)
  }
  if (doing !== 'write' && isFileDamage(text))
    return corruptError(path, `the state is damaged (${text})`)
  if (code.endsWith('_NOT_OPEN')) {
    return new StoreError('CLOSED', path, `cannot ${doing} ${path}: it was closed.`, inner)
  }
  if (/No space left|quota exceeded/i.test(text)) {
    return toStoreError(Object.assign(new Error(text), { code: 'ENOSPC' }), doing, path)
  }
  if (/Permission denied|Read-only file system/i.test(text)) {
    return toStoreError(Object.assign(new Error(text), { code: 'EACCES' }), doing, path)
  }
  return toStoreError(inner, doing, path)
}

/**
 * Whether an error means that a database file is missing, truncated or unreadable, which LevelDB
 * reports like any failed call. While the controller reads the state, such an error always means
 * damage, because LevelDB creates a missing folder itself.
 */
function isFileDamage(text: string): boolean {
  return /IO error: .*(No such file or directory|Invalid argument|Input\/output error)/.test(text)
}

/**
 * Opens a LevelDB database, and creates it if it does not exist.
 * @throws {StoreError}
 */
export async function openDatabase(path: string): Promise<LevelDatabase> {
  const database: LevelDatabase = new ClassicLevel(path, {
    cacheSize: CACHE_BYTES,
    maxOpenFiles: OPEN_FILES_MAX,
    maxFileSize: FILE_BYTES_MAX,
    writeBufferSize: WRITE_BUFFER_BYTES,
  })
  try {
    await database.open()
  } catch (error) {
    throw toLevelError(error, 'open', path)
  }
  return database
}
