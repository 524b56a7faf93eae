import { type FileHandle, link, lstat, mkdir, open, readdir, rm, statfs } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Clock } from '../../lib/clock.ts'
import { fieldProblem, Problem, type ProblemCode } from '../../lib/problems.ts'
import type { DatabaseSnapshots } from '../../ports/database-snapshots.ts'
import type { StoreSnapshot } from '../../ports/state-store.ts'
import { asStoreError, StoreError } from '../errors.ts'
import { STATE_NAME } from './level-state-store.ts'
import {
  DEFAULT_PATH,
  isSnapshotName,
  isPartial,
  isAutomaticName,
  snapshotFileName,
  partialFileName,
  SNAPSHOTS_NAME,
} from './snapshot-name.ts'
import { errorCode } from '../../lib/error-code.ts'

export const snapshotFileLimits = {
  /** Minimum ms between the end of one snapshot and the start of the next. */
  pauseMsMin: 60_000,
  /** Maximum number of automatically named snapshots; beyond it, the oldest is removed. */
  unnamedMax: 8,
  /**
   * Maximum number of snapshots named by an operator, which only the operator may remove; beyond
   * it, a further one is refused.
   */
  namedMax: 8,
  /** Bytes written between two syncs. One large sync at the end would delay those of the log. */
  unsyncedBytesMax: 8 * 1024 * 1024,
} as const

export interface SnapshotFilesDeps {
  /** The data folder. */
  readonly dir: string
  readonly machine: { snapshot(): Promise<StoreSnapshot> }
  readonly clock: Clock
  /** Reserve that the store and the log keep free; a snapshot leaves twice as much free. */
  readonly freeBytesMin: number
  /** Problem code while reads from the state are refused, else null. */
  readonly refusal: () => ProblemCode | null
  /** Bytes free on the file system of a folder. */
  readonly freeBytes?: (folder: string) => Promise<number>
}

/**
 * Snapshots of the state as files. A file holds exactly the stream of snapshot-stream.ts, which has
 * its own checksum. A file gets its name once it is complete and durable, and no file is
 * overwritten. The caller holds the lock of the data folder.
 */
export class SnapshotFiles implements DatabaseSnapshots {
  readonly #deps: SnapshotFilesDeps
  readonly #folder: string
  readonly #freeBytes: (folder: string) => Promise<number>
  #running: Promise<string> | null = null
  /** Monotonic ms at which the last snapshot was complete. */
  #doneMs: number | null = null
  #isClosed = false

  constructor(deps: SnapshotFilesDeps) {
    this.#deps = deps
    this.#folder = join(resolve(deps.dir), SNAPSHOTS_NAME)
    this.#freeBytes = deps.freeBytes ?? freeBytesOf
  }

  /** Removes partial files of a process that was interrupted. */
  async removePartial(): Promise<void> {
    for (const name of await this.#list()) {
      if (isPartial(name)) await rm(join(this.#folder, name), { force: true })
    }
  }

  async take(path: string | null): Promise<string> {
    const { clock } = this.#deps
    const wanted = path ?? DEFAULT_PATH
    // Checks the name before anything else, with the longest possible index.
    const index = Number.MAX_SAFE_INTEGER
    snapshotFileName(wanted, { folder: this.#folder, timeMs: clock.nowMs(), index })
    this.#checkPause()
    this.#running = this.#take(wanted)
    try {
      const written = await this.#running
      this.#doneMs = clock.monotonicMs()
      return written
    } catch (error) {
      throw problemOf(error, this.#folder)
    } finally {
      this.#running = null
    }
  }

  /** Cancels the snapshot in progress and refuses further ones. */
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
    this.#checkGoesOn()
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    await this.removePartial()
    await this.#requireSpace(await folderBytes(join(this.#deps.dir, STATE_NAME)))
    const snapshot = await this.#deps.machine.snapshot()
    try {
      const { index } = snapshot.mark.position
      const facts = { folder: this.#folder, timeMs: this.#deps.clock.nowMs(), index }
      const name = snapshotFileName(path, facts)
      await this.#requireRoom(name)
      await this.#write(name, snapshot)
      await this.#removeOldest(name)
      return join(this.#folder, name)
    } finally {
      // If the store was replaced meanwhile, its view is already closed.
      await snapshot.close().catch(() => undefined)
    }
  }

  async #write(name: string, snapshot: StoreSnapshot): Promise<void> {
    const partial = join(this.#folder, partialFileName(name))
    try {
      const file = await open(partial, 'wx', 0o600)
      try {
        await this.#fill(file, snapshot)
      } finally {
        await file.close()
      }
      // Do not keep a state that was found wrong meanwhile.
      this.#checkGoesOn()
      // Link instead of rename, which would overwrite a file created meanwhile.
      await link(partial, join(this.#folder, name)).catch((error: unknown) => {
        throw isExisting(error) ? taken(name) : error
      })
    } finally {
      await rm(partial, { force: true })
    }
    await syncFolder(this.#folder)
    await syncFolder(this.#deps.dir)
  }

  async #fill(file: FileHandle, snapshot: StoreSnapshot): Promise<void> {
    let unsyncedBytes = 0
    for await (const chunk of snapshot.chunks()) {
      await file.appendFile(chunk)
      unsyncedBytes += chunk.length
      if (unsyncedBytes < snapshotFileLimits.unsyncedBytesMax) continue
      await file.datasync()
      unsyncedBytes = 0
      this.#checkGoesOn()
      await this.#requireSpace(0)
    }
    await file.sync()
  }

  /** @throws {Problem} */
  #checkGoesOn(): void {
    if (this.#isClosed) throw new Problem('TIMEOUT', { detail: 'this controller is stopping' })
    const code = this.#deps.refusal()
    if (code !== null) throw new Problem(code)
  }

  /**
   * Checks the free space before writing. A snapshot is usually no larger than the state on disk.
   */
  async #requireSpace(neededBytes: number): Promise<void> {
    const wantedBytes = 2 * this.#deps.freeBytesMin + neededBytes
    const freeBytes = await this.#freeBytes(this.#folder)
    if (freeBytes >= wantedBytes) return
    const detail = `the disk of ${this.#folder} has ${freeBytes} bytes free, and ${wantedBytes} are needed`
    throw new Problem('INSUFFICIENT_STORAGE', { detail })
  }

  /**
   * @throws {Problem} when a file of that name exists, or too many that only an operator may
   * remove.
   */
  async #requireRoom(name: string): Promise<void> {
    const names = await this.#list()
    if (names.includes(name)) throw taken(name)
    if (isAutomaticName(name)) return
    const { namedMax } = snapshotFileLimits
    const named = names.filter((one) => isSnapshotName(one) && !isAutomaticName(one))
    if (named.length < namedMax) return
    throw fieldProblem(
      'path',
      `would be one more than the ${namedMax} snapshots that are kept under their own names: remove some`,
    )
  }

  /** Removes the oldest automatically named snapshots, once a newer one exists. */
  async #removeOldest(written: string): Promise<void> {
    const names = (await this.#list()).filter((name) => isAutomaticName(name) && name !== written)
    const dated = await Promise.all(
      names.map(async (name) => {
        const stats = await lstat(join(this.#folder, name)).catch(() => null)
        return { name, ms: stats?.mtimeMs ?? 0 }
      }),
    )
    dated.sort((a, b) => b.ms - a.ms)
    const kept = snapshotFileLimits.unnamedMax - Number(isAutomaticName(written))
    for (const { name } of dated.slice(kept)) await rm(join(this.#folder, name), { force: true })
  }

  async #list(): Promise<string[]> {
    try {
      return await readdir(this.#folder)
    } catch (error) {
      if (isMissing(error)) return []
      throw error
    }
  }
}

function taken(name: string): Problem {
  return fieldProblem('path', 'names a file that exists already', name)
}

/** Turns an error of files or store into a Problem; a Problem is returned unchanged. */
function problemOf(error: unknown, folder: string): unknown {
  if (error instanceof Problem) return error
  const cause = asStoreError(error, 'write', folder)
  if (!(cause instanceof StoreError)) return cause
  if (cause.code === 'NO_SPACE') {
    return new Problem('INSUFFICIENT_STORAGE', { detail: cause.message, cause })
  }
  if (cause.code !== 'CLOSED') return cause
  const detail = 'the state was replaced during the snapshot'
  return new Problem('INDEX_NOT_REACHED', { detail, cause })
}

function isMissing(error: unknown): boolean {
  return errorCode(error) === 'ENOENT'
}

function isExisting(error: unknown): boolean {
  return errorCode(error) === 'EEXIST'
}

async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/**
 * Total bytes of the files in a folder; files created or removed meanwhile may or may not count.
 */
async function folderBytes(folder: string): Promise<number> {
  let bytes = 0
  try {
    for (const name of await readdir(folder, { recursive: true })) {
      const stats = await lstat(join(folder, name)).catch(() => null)
      bytes += stats?.isFile() === true ? stats.size : 0
    }
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  return bytes
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
