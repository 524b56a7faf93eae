import { assert } from '../../lib/assert.ts'
import type { Entry, Index, Position, RestoredLog } from '../../raft/types.ts'
import { corruptError, StoreError } from '../errors.ts'
import { FILE_DISK_DEFAULTS, FileDisk, type FileDiskOptions } from './file-disk.ts'
import { nodeFileSystem, type FileSystem } from '../file-system.ts'
import { readDataIdentity, type DataIdentity } from './data-identity.ts'
import { higherPosition } from './log-evidence.ts'
import { MetaSlots, readLogMetadata, type ReadLogMeta, type LogMetadata } from './meta-slots.ts'
import { recoverLog, type DamagedLog, type RecoveredLog } from './recovery.ts'
import { repairLog, UNKNOWN_INDEX, type LogRepair } from './repair-log.ts'
import { PREPARED_SEGMENT_FILE } from './segment-preparer.ts'

/**
 * Options of `openLog`. All except `files` are plain values that can be sent to a worker thread;
 * omit `files` when you send the options.
 */
export interface LogOptions extends Partial<FileDiskOptions> {
  /**
   * Position of the state store (its mark), with which the log is compared; null when the store is
   * empty; absent: no comparison. After a crash between the installation of a snapshot and the
   * reset of the log, the new log continues after this position.
   */
  readonly statePosition?: Position | null
  /**
   * Whether the state at `statePosition` came from a snapshot (`StateStore.cameBySnapshot`). If so,
   * a log that ends before that position is not an error: the crash came before the reset of the
   * log. If not, the log has lost applied entries.
   */
  readonly stateCameBySnapshot?: boolean
  /**
   * Whether other voters can send this member the entries that it lost. If false or absent,
   * `openLog` refuses a damaged log.
   */
  readonly hasOtherVoters?: boolean
  readonly files?: FileSystem
}

export interface OpenedLog {
  readonly identity: DataIdentity
  readonly restored: RestoredLog
  readonly disk: FileDisk
  /**
   * Number of bytes of a torn write that recovery removed from the end of the log; 0 if there was
   * none.
   */
  readonly cutBytes: number
  /** Commit index that this member had recorded, even if entries up to it are lost. */
  readonly committedIndex: Index
  /** Repair of the log; null when there was no damage. */
  readonly repair: LogRepair | null
}

/** Folder, inside a data folder, that contains the segments. */
export function logFolder(dir: string): string {
  return `${dir}/wal`
}

/**
 * Opens the log of an existing data folder. The caller must hold the folder's lock
 * (`lockDataFolder`) and have opened the state store, because this function compares the log with
 * the state's position. Blocking. Everything in the result is durable: recovery syncs data that it
 * found only in the system's cache before the member acknowledges that data again. If peers can
 * send the lost entries, a damaged log is repaired (repair-log.ts).
 * @throws {StoreError} with nothing changed on disk, when the log is foreign, too new, or damaged
 * beyond repair.
 */
export function openLog(dir: string, options: LogOptions = {}): OpenedLog {
  const files = options.files ?? nodeFileSystem
  const identity = readDataIdentity(dir, files)
  const { storeId } = identity
  const found = readLogMetadata(files, dir, storeId)
  const folder = logFolder(dir)
  const settings = { ...FILE_DISK_DEFAULTS, ...definedOnly(options) }
  const log = asDamagedIfGap(recoverLog(files, folder, storeId, found.meta), folder, options)
  if ('damage' in log) {
    const { hasOtherVoters, statePosition } = options
    if (hasOtherVoters !== true || statePosition === undefined) throw log.damage
    if (!files.exists(folder)) {
      files.makeFolder(folder)
      files.syncFolder(dir)
    }
    requireSpace(files, folder, settings.freeBytesMin)
    const place = { files, dir, folder, identity, settings }
    const { disk, base, entries, repair } = repairLog(place, log, found, statePosition)
    const { hardState } = found.meta
    const boot = found.meta.boot + 1
    const { owed } = repair
    const restored = { hardState, base, entries, commit: base.index, boot, owed }
    const committedIndex = found.meta.commit
    return { identity, restored, disk, cutBytes: 0, committedIndex, repair }
  }
  return openWhole({ files, dir, folder, identity, settings }, log, found, options)
}

/**
 * Checks the log of a stopped controller without changing it, and without comparing it with the
 * state.
 * @returns CORRUPT if a start with peers would repair the log; VOTE_LOST; null when the log is
 * intact.
 * @throws {StoreError} FOREIGN, NEWER_FORMAT, or an error that prevents reading.
 */
export function findLogDamage(dir: string, files: FileSystem = nodeFileSystem): StoreError | null {
  const { storeId } = readDataIdentity(dir, files)
  try {
    const { meta } = readLogMetadata(files, dir, storeId)
    const log = recoverLog(files, logFolder(dir), storeId, meta)
    return 'damage' in log ? log.damage : null
  } catch (error) {
    if (error instanceof StoreError && error.code === 'VOTE_LOST') return error
    throw error
  }
}

interface Place {
  readonly files: FileSystem
  readonly dir: string
  readonly folder: string
  readonly identity: DataIdentity
  readonly settings: FileDiskOptions
}

/**
 * Treats a log that begins after the state's position as damaged, because the entries between the
 * two are missing.
 */
function asDamagedIfGap(
  log: RecoveredLog | DamagedLog,
  folder: string,
  { statePosition }: LogOptions,
): RecoveredLog | DamagedLog {
  if ('damage' in log || statePosition === undefined) return log
  const stateIndex = statePosition?.index ?? 0
  if (stateIndex >= log.base.index) return log
  const damage = corruptError(
    folder,
    `the state ends at index ${stateIndex} and the log begins after ${log.base.index}; the entries between are lost`,
  )
  const until = { sequence: log.segments.at(-1)?.sequence ?? 0, offset: log.end }
  return { damage, base: log.base, entries: log.entries, until }
}

function openWhole(
  { files, dir, folder, identity, settings }: Place,
  recovered: RecoveredLog,
  found: ReadLogMeta,
  options: LogOptions,
): OpenedLog {
  const mustReset = mustContinueAfter(folder, recovered, found.meta, options.statePosition)
  requireSpace(files, folder, settings.freeBytesMin)
  const fd = cleanUp(files, folder, recovered)
  const boot = found.meta.boot + 1
  const { hardState } = found.meta
  const { last } = recovered.chains
  const commit = Math.min(found.meta.commit, last.index)
  const owed = missingTail(found.meta, last, mustReset, options)
  const { storeId } = identity
  const { sequence, writeFirst } = found
  const meta = new MetaSlots(files, dir, { storeId, sequence, writeFirst })
  meta.write(openedMeta(found.meta, recovered, { boot, owed }))
  files.syncFolder(dir)

  const state = { ...recovered, hardState, commit, boot, fd, owed }
  const disk = new FileDisk(files, { folder, storeId, meta }, state, settings)
  let { base, entries }: { base: Position; entries: readonly Entry[] } = recovered
  if (mustReset !== null) {
    resetNow(disk, mustReset)
    base = mustReset
    entries = []
  }
  const restored = { hardState, base, entries, commit: Math.max(commit, base.index), boot, owed }
  const { cut } = recovered
  const cutBytes = cut === null ? 0 : cut.to - cut.from
  const committedIndex = found.meta.commit
  return { identity, restored, disk, cutBytes, committedIndex, repair: null }
}

/**
 * Computes the missing tail: the position up to which the log may lack acknowledged entries. An
 * earlier repair may have recorded one. There is also one if there are other voters, the log does
 * not contain the state's position, and the state did not come from a snapshot: apply never gets
 * ahead of the durable log, so the log lost its end without a trace. Then the missing tail is the
 * last possible position of the term, until a leader reports the end of the term. After a snapshot,
 * a crash may simply have prevented the reset of the log. A missing tail would then be wrong,
 * because it could withhold a vote that a candidate needs.
 */
function missingTail(
  meta: LogMetadata,
  last: Position,
  mustReset: Position | null,
  { hasOtherVoters, stateCameBySnapshot }: LogOptions,
): Position | null {
  // @guard debt-outlives-a-restart
  const owed = meta.owed === null || higherPosition(last, meta.owed) === last ? null : meta.owed
  // @guard snapshot-leaves-no-debt
  if (mustReset === null || hasOtherVoters !== true || stateCameBySnapshot === true) return owed
  const unknown = { term: meta.hardState.term, index: UNKNOWN_INDEX }
  return owed === null ? unknown : higherPosition(owed, unknown)
}

function definedOnly(options: LogOptions): Partial<FileDiskOptions> {
  const { segmentBytes, bufferBytes, freeBytesMin } = options
  return {
    ...(segmentBytes === undefined ? {} : { segmentBytes }),
    ...(bufferBytes === undefined ? {} : { bufferBytes }),
    ...(freeBytesMin === undefined ? {} : { freeBytesMin }),
  }
}

function openedMeta(
  meta: LogMetadata,
  recovered: RecoveredLog,
  { boot, owed }: { readonly boot: number; readonly owed: Position | null },
): LogMetadata {
  const segment = recovered.segments.at(-1)
  assert(segment !== undefined, 'a log has at least one segment')
  const synced = { segment: segment.sequence, offset: recovered.end }
  return { ...meta, boot, synced, last: recovered.chains.last, isClosed: false, owed }
}

/**
 * Compares log and state.
 * @returns the state's position if the log lacks it and must therefore continue after it; otherwise
 * null.
 */
function mustContinueAfter(
  folder: string,
  log: RecoveredLog,
  meta: LogMetadata,
  state: Position | null | undefined,
): Position | null {
  if (state === undefined) return null
  const { index, term } = state ?? { index: 0, term: 0 }
  const { base, chains, entries } = log
  if (index > chains.last.index) return { index, term }
  const termInLog = index === base.index ? base.term : entries[index - base.index - 1]?.term
  if (termInLog === term) return null
  if (index <= meta.commit) {
    throw corruptError(
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
    `the disk of ${folder} has ${freeBytes} bytes free and ${freeBytesMin} (log.lowSpaceBytes) are needed to start; free space and start again.`,
  )
}

/**
 * Removes leftovers, overwrites the torn end with zeros, and makes everything that remains durable.
 * @returns the file descriptor of the last segment.
 */
function cleanUp(files: FileSystem, folder: string, recovered: RecoveredLog): number {
  for (const path of recovered.leftovers) files.remove(path)
  files.remove(`${folder}/${PREPARED_SEGMENT_FILE}`)
  files.syncFolder(folder)
  const last = recovered.segments.at(-1)
  assert(last !== undefined, 'a log has at least one segment')
  const fd = files.open(last.path, false)
  const { cut } = recovered
  // The torn end is overwritten, because intact records after the torn record could later look like
  // a continuation of the log.
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
