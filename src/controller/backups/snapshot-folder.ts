import { lstat, mkdir, readdir, rm, statfs } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import type { Logger } from 'pino'

import { writeNewBackup } from '../../backup/backup-files.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { errorCode } from '../../lib/error-code.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import { syncFolder } from '../../pki/secret-file.ts'
import type { DatabaseSnapshots } from '../../ports/database-snapshots.ts'
import { toStoreError, StoreError } from '../../store/errors.ts'
import { STATE_FOLDER_NAME } from '../../store/state/level-state-store.ts'
import { type BackupDeps, streamBackupBytes, startBackup } from './start-backup.ts'

export const snapshotFileLimits = {
  /** Minimum ms between the end of one successful snapshot and the start of the next. */
  pauseMsMin: 60_000,
  /** Maximum number of automatically named snapshots; the oldest is removed when there are more. */
  unnamedMax: 8,
  /**
   * Maximum number of snapshots that an operator named. Only an operator may remove them, so a
   * further one is refused at the limit.
   */
  namedMax: 8,
} as const

/** Name of the snapshot folder inside a data folder. */
const SNAPSHOTS_NAME = 'snapshots'
/** Default path of a snapshot. */
const DEFAULT_PATH = '__DB_DIR__/__DB_FILE__-__DATE__-__TIME__'
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
const UNNAMED = new RegExp(`^${STATE_FOLDER_NAME}-[0-9]{8}-[0-9]{6}$`)
/** Name of an incomplete file. It begins with a dot, which no snapshot name may. */
const PARTIAL = /^\..*\.partial$/

export interface SnapshotFolderDeps extends BackupDeps {
  /** Path of the data folder. */
  readonly dir: string
  /** Bytes that store and log must leave free. A snapshot must leave twice as much free. */
  readonly freeBytesMin: number
  /** Returns the free bytes on the file system of a folder. */
  readonly freeBytes?: (folder: string) => Promise<number>
}

/**
 * Opens the snapshots of the data folder, and removes incomplete snapshots that a killed process
 * left. The caller must hold the folder's lock.
 */
export async function openSnapshotFolder(
  { data, log: { lowSpaceBytes } }: ControllerConfig,
  log: Logger,
  deps: BackupDeps,
): Promise<SnapshotFolder> {
  const snapshots = new SnapshotFolder({ ...deps, dir: data, freeBytesMin: lowSpaceBytes })
  await snapshots.removePartial().catch((err: unknown) => {
    log.warn({ err }, 'cannot remove the remains of an unfinished snapshot')
  })
  return snapshots
}

/**
 * Unencrypted backups in the data folder. They contain the state that this controller has applied,
 * without the cluster's secrets. A file gets its final name only when it is complete and durable,
 * and no file is overwritten.
 */
export class SnapshotFolder implements DatabaseSnapshots {
  readonly #deps: SnapshotFolderDeps
  readonly #folder: string
  readonly #freeBytes: (folder: string) => Promise<number>
  #running: Promise<string> | null = null
  /** Monotonic ms at which the last snapshot was completed. */
  #doneMs: number | null = null
  #isClosed = false

  constructor(deps: SnapshotFolderDeps) {
    this.#deps = { ...deps, refusal: () => (this.#isClosed ? 'TIMEOUT' : deps.refusal()) }
    this.#folder = join(resolve(deps.dir), SNAPSHOTS_NAME)
    this.#freeBytes = deps.freeBytes ?? freeBytesOf
  }

  /** Removes incomplete files that a killed process left. */
  async removePartial(): Promise<void> {
    for (const name of await this.#list()) {
      if (PARTIAL.test(name)) await rm(join(this.#folder, name), { force: true })
    }
  }

  async take(path: string | null): Promise<string> {
    const { clock } = this.#deps
    const wanted = path ?? DEFAULT_PATH
    // The name is checked before anything else, with the longest possible index in it.
    const index = Number.MAX_SAFE_INTEGER
    snapshotFileName(wanted, { folder: this.#folder, takenAtMs: clock.nowMs(), index })
    this.#checkPause()
    this.#running = this.#take(wanted)
    try {
      const written = await this.#running
      this.#doneMs = clock.monotonicMs()
      return written
    } catch (error) {
      throw this.#isClosed
        ? new Problem('TIMEOUT', { detail: 'this controller is stopping' })
        : problemOf(error, this.#folder)
    } finally {
      this.#running = null
    }
  }

  /** Aborts the snapshot in progress and refuses new ones. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running?.catch(() => undefined)
  }

  #checkPause(): void {
    if (this.#running !== null) {
      throw new Problem('RATE_LIMITED', { detail: 'a snapshot is being written' })
    }
    if (this.#doneMs === null) return
    const { pauseMsMin } = snapshotFileLimits
    const leftMs = this.#doneMs + pauseMsMin - this.#deps.clock.monotonicMs()
    if (leftMs <= 0) return
    throw new Problem('RATE_LIMITED', {
      detail: `at most one snapshot in ${pauseMsMin / 1000} seconds`,
      retryAfterSeconds: Math.ceil(leftMs / 1000),
    })
  }

  async #take(path: string): Promise<string> {
    const deps = this.#deps
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    await this.removePartial()
    await this.#requireSpace(await folderBytes(join(deps.dir, STATE_FOLDER_NAME)))
    const taken = await startBackup(deps, {
      recipient: null,
      hasSecrets: false,
      isLinearizable: false,
    })
    try {
      const name = snapshotFileName(path, { folder: this.#folder, ...taken.writer.manifest })
      await this.#requireRoom(name)
      const written = join(this.#folder, name)
      await writeNewBackup(written, streamBackupBytes(deps, taken), () =>
        this.#requireSpace(0),
      ).catch((error: unknown) => {
        throw errorCode(error) === 'EEXIST' ? takenName(name) : error
      })
      syncFolder(deps.dir)
      await this.#removeOldest(name)
      return written
    } finally {
      await taken.close()
    }
  }

  /**
   * Checks whether enough space is free, before and while a snapshot is written. A snapshot is
   * usually no larger than the state on disk.
   */
  async #requireSpace(neededBytes: number): Promise<void> {
    const wantedBytes = 2 * this.#deps.freeBytesMin + neededBytes
    const freeBytes = await this.#freeBytes(this.#folder)
    if (freeBytes >= wantedBytes) return
    const detail = `the disk of ${this.#folder} has ${freeBytes} bytes free, and ${wantedBytes} are needed`
    throw new Problem('INSUFFICIENT_STORAGE', { detail })
  }

  /**
   * Checks whether a snapshot may be written under this name.
   * @throws {Problem} when a file with this name exists, or when there are already too many
   * snapshots that only an operator may remove.
   */
  async #requireRoom(name: string): Promise<void> {
    const names = await this.#list()
    if (names.includes(name)) throw takenName(name)
    if (UNNAMED.test(name)) return
    const { namedMax } = snapshotFileLimits
    const named = names.filter((one) => NAME.test(one) && !UNNAMED.test(one))
    if (named.length < namedMax) return
    throw fieldProblem(
      'path',
      `would be one more than the ${namedMax} snapshots that are kept under their own names: remove some`,
    )
  }

  /** Removes the oldest automatically named snapshots, after a newer snapshot was written. */
  async #removeOldest(written: string): Promise<void> {
    const names = (await this.#list()).filter((name) => UNNAMED.test(name) && name !== written)
    const dated = await Promise.all(
      names.map(async (name) => {
        const stats = await lstat(join(this.#folder, name)).catch(() => null)
        return { name, ms: stats?.mtimeMs ?? 0 }
      }),
    )
    dated.sort((a, b) => b.ms - a.ms)
    const kept = snapshotFileLimits.unnamedMax - Number(UNNAMED.test(written))
    for (const { name } of dated.slice(kept)) await rm(join(this.#folder, name), { force: true })
  }

  async #list(): Promise<string[]> {
    try {
      return await readdir(this.#folder)
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return []
      throw error
    }
  }
}

function takenName(name: string): Problem {
  return fieldProblem('path', 'names a file that exists already', name)
}

/** Turns an error of the file system or the store into a Problem; returns a Problem unchanged. */
function problemOf(error: unknown, folder: string): unknown {
  if (error instanceof Problem) return error
  const cause = toStoreError(error, 'write', folder)
  if (!(cause instanceof StoreError)) return cause
  if (cause.code === 'NO_SPACE') {
    return new Problem('INSUFFICIENT_STORAGE', { detail: cause.message, cause })
  }
  if (cause.code !== 'CLOSED') return cause
  const detail = 'the state was replaced during the snapshot'
  return new Problem('INDEX_NOT_REACHED', { detail, cause })
}

async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/**
 * Total bytes of the files in a folder; files that are created or removed during the call may or
 * may not be included.
 */
async function folderBytes(folder: string): Promise<number> {
  let bytes = 0
  try {
    for (const name of await readdir(folder, { recursive: true })) {
      const stats = await lstat(join(folder, name)).catch(() => null)
      bytes += stats?.isFile() === true ? stats.size : 0
    }
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
  return bytes
}

/**
 * File name for a requested path, which must be directly in the snapshot folder.
 * @throws {Problem} COULD_NOT_VALIDATE on `path`.
 */
function snapshotFileName(
  path: string,
  facts: { readonly folder: string; readonly takenAtMs: number; readonly index: number },
): string {
  const { folder, takenAtMs, index } = facts
  const [date = '', time = ''] = new Date(takenAtMs).toISOString().replace(/[-:]/g, '').split('T')
  const filled = path
    .replaceAll('__DB_DIR__', () => folder)
    .replaceAll('__DB_FILE__', STATE_FOLDER_NAME)
    .replaceAll('__DATE__', date)
    .replaceAll('__TIME__', time.slice(0, 6))
    .replaceAll('__RAFT_INDEX__', String(index))
  const name = filled.startsWith(`${folder}/`) ? filled.slice(folder.length + 1) : filled
  if (NAME.test(name)) return name
  throw fieldProblem(
    'path',
    'must name a file directly in __DB_DIR__: 1 to 128 letters, digits, dots, hyphens and underscores, a letter or digit first',
    path,
  )
}
