import {
  closeSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { errorMessage } from '../lib/error-code.ts'

export const SECRET_FILE_BYTES_MAX = 64 * 1024

/** One sentence with its remedy; never holds the content. */
export class SecretFileError extends Error {
  override readonly name = 'SecretFileError'
}

/**
 * Writes a secret so that it is never readable by others, not even for a moment, and whole or not
 * at all: a 0600 file beside it, synced, then renamed over it.
 * @throws the file system's error.
 */
export function writeSecretFile(path: string, text: string): void {
  writeWhole(path, text, 0o600)
}

/**
 * Writes what anybody may read (certificates), whole or not at all.
 * @throws the file system's error.
 */
export function writePublicFile(path: string, text: string): void {
  writeWhole(path, text, 0o644)
}

/**
 * Writes as the two above, but never over a file that is there, even one that came a moment ago.
 * @throws the file system's error, EEXIST.
 */
export function writeNewFile(
  path: string,
  content: string | Uint8Array,
  mode: 0o600 | 0o644,
): void {
  writeWhole(path, content, mode, (partial) => {
    try {
      linkSync(partial, path)
    } finally {
      rmSync(partial, { force: true })
    }
  })
}

function writeWhole(
  path: string,
  content: string | Uint8Array,
  mode: number,
  put = (partial: string): void => renameSync(partial, path),
): void {
  const partial = `${path}.${process.pid}.partial`
  rmSync(partial, { force: true })
  const file = openSync(partial, 'wx', mode)
  try {
    // The umask can only take away bits; this makes the mode exact all the same.
    fchmodSync(file, mode)
    const bytes = Buffer.from(content)
    for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at)
    fsyncSync(file)
  } catch (error) {
    rmSync(partial, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
  put(partial)
  syncFolder(dirname(path))
}

export interface SecretText {
  readonly text: string
  /** A sentence when the file's group may read it; null when only its owner may. */
  readonly warning: string | null
}

/**
 * @throws {SecretFileError} missing, unreadable, too large, no regular file, or open to every user
 * of this host (whoever could read it must be taken to have done so).
 */
export function readSecretFile(path: string, bytesMax = SECRET_FILE_BYTES_MAX): SecretText {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch (error) {
    throw new SecretFileError(`${path} cannot be read: ${openFaultOf(error)}`, { cause: error })
  }
  try {
    // Judged on the open file, so that it cannot be exchanged between the check and the read.
    const status = fstatSync(file)
    if (!status.isFile()) throw new SecretFileError(`${path} is not a regular file`)
    if (status.size > bytesMax) {
      throw new SecretFileError(`${path} is larger than ${bytesMax} bytes`)
    }
    const mode = (status.mode & 0o777).toString(8).padStart(4, '0')
    if ((status.mode & 0o027) !== 0) {
      throw new SecretFileError(
        `${path} has mode ${mode}: others on this host can read or change it; run 'chmod 600 ${path}', and replace the secret if anyone may have read it`,
      )
    }
    const warning =
      (status.mode & 0o040) === 0
        ? null
        : `${path} has mode ${mode}: its group can read it; 'chmod 600 ${path}' closes that`
    return { text: readAll(file, status.size), warning }
  } finally {
    closeSync(file)
  }
}

function readAll(file: number, size: number): string {
  const bytes = Buffer.alloc(size)
  let at = 0
  while (at < size) {
    const count = readSync(file, bytes, at, size - at, at)
    if (count === 0) break
    at += count
  }
  return bytes.toString('utf8', 0, at)
}

function openFaultOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : null
  if (code === 'ENOENT') return 'file not found'
  if (code === 'EACCES') return 'the user running this program has no permission to'
  return errorMessage(error)
}

/**
 * Makes what was renamed or removed in a folder outlive a power cut.
 * @throws the file system's error.
 */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
