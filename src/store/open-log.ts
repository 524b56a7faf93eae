import { assert } from '../lib/assert.ts'
import type { Entry, Position, RestoredLog } from '../raft/types.ts'
import { corrupt, StoreError } from './errors.ts'
import { FILE_DISK_DEFAULTS, FileDisk, type FileDiskOptions } from './file-disk.ts'
import { nodeFileSystem, type FileSystem } from './file-system.ts'
import { readIdentity, type DataIdentity } from './identity.ts'
import { MetaSlots, readMeta, type Meta } from './meta-slots.ts'
import { recoverLog, type RecoveredLog } from './recovery.ts'
import { PREPARED_NAME } from './segment-preparer.ts'

/** Plain values only, so that they can cross to a worker; `files` stays out of it there. */
export interface LogOptions extends Partial<FileDiskOptions> {
  /**
   * Where the state store stands (its mark), null when it is empty. The log is checked against it, and continued after
   * it when a crash came between the installation of a snapshot and the reset of the log. Absent: not checked.
   */
  readonly statePosition?: Position | null
  readonly files?: FileSystem
}

export interface OpenedLog {
  readonly identity: DataIdentity
  readonly restored: RestoredLog
  readonly disk: FileDisk
  /** Bytes of a torn write that were cut from the end of the log: worth a line in the log of the program. */
  readonly cutBytes: number
}

/** Folder of the segments inside a data folder. */
export function logFolder(dir: string): string {
  return `${dir}/wal`
}

/**
 * Opens the log of a formed data folder, which the caller must hold the lock of (`lockDataFolder`), with the state
 * store opened before, since the log is checked against its mark. Blocking. All that it returns is
 * durable: what recovery found in the system's cache is synced before anyone may promise it again.
 * @throws {StoreError} with nothing changed on disk when the log is damaged, foreign or too new.
 */
export function openLog(dir: string, options: LogOptions = {}): OpenedLog {
  const files = options.files ?? nodeFileSystem
  const identity = readIdentity(dir, files)
  const found = readMeta(files, dir, identity.storeId)
  const folder = logFolder(dir)
  const recovered = recoverLog(files, folder, identity.storeId, found.meta)
  const mustReset = mustContinueAfter(folder, recovered, found.meta, options.statePosition)

  const settings = { ...FILE_DISK_DEFAULTS, ...definedOnly(options) }
  requireSpace(files, folder, settings.freeBytesMin)
  const fd = cleanUp(files, folder, recovered)
  const boot = found.meta.boot + 1
  const { hardState } = found.meta
  const commit = Math.min(found.meta.commit, recovered.chains.last.index)
  const { storeId } = identity
  const { sequence, writeFirst } = found
  const meta = new MetaSlots(files, dir, { storeId, sequence, writeFirst })
  meta.write(openedMeta(found.meta, recovered, boot))
  files.syncFolder(dir)

  const state = { ...recovered, hardState, commit, boot, fd }
  const disk = new FileDisk(files, { folder, storeId, meta }, state, settings)
  let { base, entries }: { base: Position; entries: readonly Entry[] } = recovered
  if (mustReset !== null) {
    resetNow(disk, mustReset)
    base = mustReset
    entries = []
  }
  const restored = { hardState, base, entries, commit: Math.max(commit, base.index), boot }
  const { cut } = recovered
  return { identity, restored, disk, cutBytes: cut === null ? 0 : cut.to - cut.from }
}

function definedOnly(options: LogOptions): Partial<FileDiskOptions> {
  const { segmentBytes, bufferBytes, freeBytesMin } = options
  return {
    ...(segmentBytes === undefined ? {} : { segmentBytes }),
    ...(bufferBytes === undefined ? {} : { bufferBytes }),
    ...(freeBytesMin === undefined ? {} : { freeBytesMin }),
  }
}

function openedMeta(meta: Meta, recovered: RecoveredLog, boot: number): Meta {
  const segment = recovered.segments.at(-1)
  assert(segment !== undefined, 'a log has at least one segment')
  return { ...meta, boot, synced: { segment: segment.sequence, offset: recovered.end } }
}

/**
 * Compares log and state. @returns the position to continue after when the state came by snapshot and the log does not
 * reach it, else null.
 */
function mustContinueAfter(
  folder: string,
  log: RecoveredLog,
  meta: Meta,
  state: Position | null | undefined,
): Position | null {
  if (state === undefined) return null
  const { index, term } = state ?? { index: 0, term: 0 }
  const { base, chains, entries } = log
  if (index < base.index) {
    throw corrupt(
      folder,
      `the state reaches index ${index} and the log begins after ${base.index}, so what lies between is lost`,
    )
  }
  if (index > chains.last.index) return { index, term }
  const termInLog = index === base.index ? base.term : entries[index - base.index - 1]?.term
  if (termInLog === term) return null
  if (index <= meta.commit) {
    throw corrupt(
      folder,
      `at index ${index}, which is committed, the state is of term ${term} and the log of term ${termInLog}`,
    )
  }
  return { index, term }
}

function requireSpace(files: FileSystem, folder: string, freeBytesMin: number): void {
  const freeBytes = files.freeBytes(folder)
  if (freeBytes >= freeBytesMin) return
  throw new StoreError(
    'NO_SPACE',
    folder,
    `the disk of ${folder} has ${freeBytes} bytes free and ${freeBytesMin} are needed to start: free space and start again.`,
  )
}

/** Removes leftovers, zeros the torn end, and makes all that is kept durable. @returns the open last segment. */
function cleanUp(files: FileSystem, folder: string, recovered: RecoveredLog): number {
  for (const path of recovered.leftovers) files.remove(path)
  files.remove(`${folder}/${PREPARED_NAME}`)
  files.syncFolder(folder)
  const last = recovered.segments.at(-1)
  assert(last !== undefined, 'a log has at least one segment')
  const fd = files.open(last.path, false)
  const { cut } = recovered
  // Left in place, good records behind the torn one could be taken for the continuation of later ones.
  if (cut !== null) files.write(fd, cut.path, new Uint8Array(cut.to - cut.from), cut.from)
  files.sync(fd, last.path)
  return fd
}

function resetNow(disk: FileDisk, position: Position): void {
  disk.reset(position, 0)
  disk.flush()
  if (disk.failure === null) return
  disk.closeNow()
  throw disk.failure
}
