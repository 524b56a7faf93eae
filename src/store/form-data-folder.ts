import { basename, dirname, join, resolve } from 'node:path'
import { assert } from '../lib/assert.ts'
import type { Entry } from '../raft/types.ts'
import { ChainWindow } from './chain-window.ts'
import { StoreError } from './errors.ts'
import { FILE_DISK_DEFAULTS, FileDisk, type FileDiskOptions } from './file-disk.ts'
import { nodeFileSystem, type FileSystem } from './file-system.ts'
import { writeIdentity, type DataIdentity } from './identity.ts'
import { MetaSlots, NODE_ID_BYTES_MAX } from './meta-slots.ts'
import { makeSegment } from './new-segment.ts'
import { logFolder } from './open-log.ts'
import { SegmentPreparer } from './segment-preparer.ts'
import { SEGMENT_HEADER_BYTES, STORE_ID_BYTES, ZERO_CHAIN } from './wal-format.ts'

export interface FormOptions extends Partial<
  Pick<FileDiskOptions, 'segmentBytes' | 'freeBytesMin'>
> {
  readonly files?: FileSystem
}

/**
 * Makes a new data folder whose log holds `entries`, consecutive from index 1 and taken as committed; none for a member
 * that joins. `dir` may be absent or empty. Built beside it and renamed, so that after a crash at any point there is
 * either a whole data folder or none; what a crash left beside it is removed by the next attempt.
 * @throws {StoreError} NOT_EMPTY, NOT_WRITABLE, MISSING (the parent folder), NO_SPACE.
 */
export function formDataFolder(
  dir: string,
  content: DataIdentity & { readonly entries: readonly Entry[] },
  options: FormOptions = {},
): void {
  const files = options.files ?? nodeFileSystem
  const { nodeId, storeId, clusterId, generation, entries } = content
  assert(storeId.length === STORE_ID_BYTES, 'a store id has 16 bytes')
  assert(Buffer.byteLength(nodeId) <= NODE_ID_BYTES_MAX, 'a node id is within its limit')
  const target = resolve(dir)
  requireEmpty(files, target)
  const building = join(dirname(target), `.${basename(target)}.forming`)
  files.remove(building)
  files.makeFolder(building)
  writeIdentity(building, { nodeId, storeId, clusterId, generation }, files)
  writeFirstLog(files, building, storeId, entries, options)
  files.syncFolder(building)
  // Over an empty folder, rename replaces it; over one that was filled meanwhile it fails.
  files.rename(building, target)
  files.syncFolder(dirname(target))
}

function requireEmpty(files: FileSystem, dir: string): void {
  if (!files.exists(dir) || files.list(dir).length === 0) return
  throw new StoreError(
    'NOT_EMPTY',
    dir,
    `${dir} is not empty and is left as it is: name a new folder, or move this one away if its data is no longer needed.`,
  )
}

function writeFirstLog(
  files: FileSystem,
  dir: string,
  storeId: Uint8Array,
  entries: readonly Entry[],
  options: FormOptions,
): void {
  const segmentBytes = options.segmentBytes ?? FILE_DISK_DEFAULTS.segmentBytes
  const freeBytesMin = options.freeBytesMin ?? FILE_DISK_DEFAULTS.freeBytesMin
  const settings = { ...FILE_DISK_DEFAULTS, segmentBytes, freeBytesMin }
  const folder = logFolder(dir)
  files.makeFolder(folder)
  const preparer = new SegmentPreparer(files, folder, settings)
  const base = { term: 0, index: 0 }
  const segment = makeSegment(files, folder, preparer, {
    ...{ storeId, sequence: 1, isReset: false, recordBytes: 0 },
    ...{ previous: base, previousChain: ZERO_CHAIN },
  })
  const meta = new MetaSlots(files, dir, { storeId, sequence: 0, writeFirst: 0 })
  const state = {
    hardState: { term: entries.at(-1)?.term ?? 0, votedFor: null },
    commit: 0,
    boot: 0,
    chains: new ChainWindow(base, ZERO_CHAIN),
    segments: [{ path: segment.path, sequence: 1, previousIndex: 0 }],
    fd: segment.fd,
    end: SEGMENT_HEADER_BYTES,
    capacity: segment.bytes,
    owed: null,
  }
  const disk = new FileDisk(files, { folder, storeId, meta }, state, settings)
  disk.write({ token: 0, hardState: null, entries, commit: entries.length })
  // Closing writes the slots for the first time: term, commit and what is synced.
  disk.closeNow()
  if (disk.failure !== null) throw disk.failure
}
