import { basename, dirname, join, resolve } from 'node:path'
import { assert } from '../../lib/assert.ts'
import type { Entry, Position } from '../../raft/types.ts'
import { ReplaceableEntryChains } from '../log/replaceable-entry-chains.ts'
import { StoreError } from '../errors.ts'
import { FILE_DISK_DEFAULTS, FileDisk, type FileDiskOptions } from '../log/file-disk.ts'
import { nodeFileSystem, type FileSystem } from '../file-system.ts'
import { writeDataIdentity, type DataIdentity } from '../log/data-identity.ts'
import { MetaSlots, NODE_ID_BYTES_MAX } from '../log/meta-slots.ts'
import { createSegment } from '../log/create-segment.ts'
import { logFolder } from '../log/open-log.ts'
import { SegmentPreparer } from '../log/segment-preparer.ts'
import { SEGMENT_HEADER_BYTES, STORE_ID_BYTES, ZERO_CHAIN } from '../log/wal-format.ts'

interface FormOptions extends Partial<Pick<FileDiskOptions, 'segmentBytes' | 'freeBytesMin'>> {
  readonly files?: FileSystem
}

/** The initial log of a new data folder: its base, and the committed entries after the base. */
export interface InitialLog {
  /** Position of the state that is already in the folder. */
  readonly base: Position
  /** Entries with consecutive indexes that begin after `base`. */
  readonly entries: readonly Entry[]
}

/**
 * Creates a data folder whose log contains `entries`: consecutive from index 1 and committed, or
 * empty for a member that joins. `dir` may be absent or empty. The function builds the folder under
 * another name in the same parent folder and then renames it, so that a crash leaves either a
 * complete data folder or none. The next attempt removes leftovers of a crash.
 * @throws {StoreError} NOT_EMPTY, NOT_WRITABLE, MISSING (the parent folder), NO_SPACE.
 */
export function createDataFolder(
  dir: string,
  content: DataIdentity & { readonly entries: readonly Entry[] },
  options: FormOptions = {},
): void {
  const { entries } = content
  const forming = beginForming(dir, content, options)
  finishForming(forming, content, { base: { term: 0, index: 0 }, entries }, options)
}

/**
 * Like `createDataFolder`, for a folder that starts with a state.
 * @param fill writes the state to the given folder, closes it, and returns the log that continues
 * after the state.
 * @throws {StoreError} as `createDataFolder`, and errors of `fill`, after which the unfinished
 * folder is removed.
 */
export async function createDataFolderWithState(
  dir: string,
  content: DataIdentity,
  fill: (building: string) => Promise<InitialLog>,
  options: FormOptions = {},
): Promise<void> {
  const files = options.files ?? nodeFileSystem
  const forming = beginForming(dir, content, options)
  try {
    finishForming(forming, content, await fill(forming.building), options)
  } catch (error) {
    files.remove(forming.building)
    throw error
  }
}

interface Forming {
  readonly target: string
  readonly building: string
}

function beginForming(dir: string, identity: DataIdentity, options: FormOptions): Forming {
  const files = options.files ?? nodeFileSystem
  const { nodeId, storeId, clusterId, generation } = identity
  assert(storeId.length === STORE_ID_BYTES, 'a store id has 16 bytes')
  assert(Buffer.byteLength(nodeId) <= NODE_ID_BYTES_MAX, 'a node id is within its limit')
  const target = resolve(dir)
  requireEmpty(files, target)
  const building = join(dirname(target), `.${basename(target)}.forming`)
  files.remove(building)
  files.makeFolder(building)
  writeDataIdentity(building, { nodeId, storeId, clusterId, generation }, files)
  return { target, building }
}

function finishForming(
  { target, building }: Forming,
  { storeId }: DataIdentity,
  log: InitialLog,
  options: FormOptions,
): void {
  const files = options.files ?? nodeFileSystem
  writeFirstLog(files, building, storeId, log, options)
  files.syncFolder(building)
  // The rename replaces an empty folder; it fails if another program has created files in the
  // folder meanwhile.
  files.rename(building, target)
  files.syncFolder(dirname(target))
}

function requireEmpty(files: FileSystem, dir: string): void {
  if (!files.exists(dir) || files.list(dir).length === 0) return
  throw new StoreError(
    'NOT_EMPTY',
    dir,
    `${dir} is not empty; choose another folder, or move this one away if its data is no longer needed.`,
  )
}

function writeFirstLog(
  files: FileSystem,
  dir: string,
  storeId: Uint8Array,
  { base, entries }: InitialLog,
  options: FormOptions,
): void {
  const segmentBytes = options.segmentBytes ?? FILE_DISK_DEFAULTS.segmentBytes
  const freeBytesMin = options.freeBytesMin ?? FILE_DISK_DEFAULTS.freeBytesMin
  const settings = { ...FILE_DISK_DEFAULTS, segmentBytes, freeBytesMin }
  const folder = logFolder(dir)
  files.makeFolder(folder)
  const preparer = new SegmentPreparer(files, folder, settings)
  const segment = createSegment(files, folder, preparer, {
    storeId,
    sequence: 1,
    isReset: false,
    recordBytes: 0,
    previous: base,
    previousChain: ZERO_CHAIN,
  })
  const meta = new MetaSlots(files, dir, { storeId, sequence: 0, writeFirst: 0 })
  const state = {
    hardState: { term: entries.at(-1)?.term ?? base.term, votedFor: null },
    commit: base.index,
    boot: 0,
    chains: new ReplaceableEntryChains(base, ZERO_CHAIN),
    segments: [{ path: segment.path, sequence: 1, previousIndex: base.index }],
    fd: segment.fd,
    end: SEGMENT_HEADER_BYTES,
    capacity: segment.bytes,
    owed: null,
  }
  const disk = new FileDisk(files, { folder, storeId, meta }, state, settings)
  disk.write({ token: 0, hardState: null, entries, commit: base.index + entries.length })
  // `closeNow` writes the meta slots for the first time: term, commit index and synced offset.
  disk.closeNow()
  if (disk.failure !== null) throw disk.failure
}
