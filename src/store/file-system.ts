import {
  closeSync,
  constants,
  existsSync,
  fdatasyncSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs'
import { toStoreError } from './errors.ts'

/**
 * The blocking file calls on which durability depends. Through this interface, tests can count the
 * calls, make them fail, and simulate a power failure between two calls. A call that fails throws a
 * {@link StoreError}; only `close` throws the error of the system.
 */
export interface FileSystem {
  /**
   * Opens a file for writing; if `isNew`, the file must not exist yet. New files have mode 0600.
   */
  open(path: string, isNew: boolean): number
  /** Writes all bytes, starting at offset `position`. */
  write(fd: number, path: string, bytes: Uint8Array, position: number): void
  /** fdatasync: makes the written bytes durable, and also the size of a file that has grown. */
  sync(fd: number, path: string): void
  close(fd: number): void
  read(path: string): Uint8Array<ArrayBuffer>
  /** The names in a folder, sorted. */
  list(folder: string): string[]
  exists(path: string): boolean
  /** Creates a folder with mode 0700. */
  makeFolder(path: string): void
  rename(from: string, to: string): void
  /** Removes a file or a whole folder; a missing path is no error. */
  remove(path: string): void
  /**
   * Makes creations, renames and removals in `folder` durable. Without this call, a file may vanish
   * after a power failure (bug 32 in `test/zoo/`).
   */
  syncFolder(folder: string): void
  /** Free bytes, for unprivileged users, on the file system that contains `path`. */
  freeBytes(path: string): number
}

function guarded<T>(doing: string, path: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    throw toStoreError(error, doing, path)
  }
}

function writeFully(fd: number, bytes: Uint8Array, position: number): void {
  let done = 0
  // The loop is needed because a write may be short (signal, quota) without an error.
  while (done < bytes.length) {
    done += writeSync(fd, bytes, done, bytes.length - done, position + done)
  }
}

function syncFolder(folder: string): void {
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

export const nodeFileSystem: FileSystem = {
  open: (path, isNew) => guarded('open', path, () => openSync(path, isNew ? 'wx' : 'r+', 0o600)),
  write: (fd, path, bytes, position) =>
    guarded('write', path, () => writeFully(fd, bytes, position)),
  sync: (fd, path) => guarded('sync', path, () => fdatasyncSync(fd)),
  close: (fd) => closeSync(fd),
  // The bytes are copied, because Node reads small files into a shared pool, and callers must not
  // keep views of the pool.
  read: (path) => guarded('read', path, () => new Uint8Array(readFileSync(path))),
  list: (folder) => guarded('list', folder, () => readdirSync(folder).sort()),
  exists: existsSync,
  makeFolder: (path) => guarded('create', path, () => mkdirSync(path, { mode: 0o700 })),
  rename: (from, to) => guarded('rename', from, () => renameSync(from, to)),
  remove: (path) =>
    guarded('remove', path, () => rmSync(path, { recursive: true, force: true, maxRetries: 3 })),
  syncFolder: (folder) => guarded('sync', folder, () => syncFolder(folder)),
  freeBytes: (path) =>
    guarded('measure', path, () => {
      const stats = statfsSync(path)
      return stats.bavail * stats.bsize
    }),
}

/**
 * Durably replaces a small file: a reader finds either the whole old text or the whole new text
 * (bug 3 in `test/zoo/`).
 */
export function replaceFile(files: FileSystem, folder: string, name: string, text: string): void {
  const temporary = `${folder}/${name}.new`
  files.remove(temporary)
  const fd = files.open(temporary, true)
  try {
    files.write(fd, temporary, Buffer.from(text, 'utf8'), 0)
    files.sync(fd, temporary)
  } finally {
    files.close(fd)
  }
  files.rename(temporary, `${folder}/${name}`)
  files.syncFolder(folder)
}
