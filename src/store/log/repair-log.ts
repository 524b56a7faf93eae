import type { Entry, Position } from '../../raft/types.ts'
import { ReplaceableEntryChains } from './replaceable-entry-chains.ts'
import { StoreError } from '../errors.ts'
import { FileDisk, type FileDiskOptions } from './file-disk.ts'
import type { FileSystem } from '../file-system.ts'
import type { DataIdentity } from './data-identity.ts'
import { findLogEndEvidence, higherPosition, type LogEvidence } from './log-evidence.ts'
import { MetaSlots, type ReadLogMeta } from './meta-slots.ts'
import { createSegment } from './create-segment.ts'
import type { DamagedLog } from './recovery.ts'
import { PREPARED_SEGMENT_FILE, SegmentPreparer } from './segment-preparer.ts'
import { SEGMENT_HEADER_BYTES, ZERO_CHAIN } from './wal-format.ts'

/** Folder, inside the log folder, for copies of the files that a repair removed. */
const DAMAGED_NAME = 'damaged'
/** Maximum total size of the segment files of a damaged log that a repair copies for inspection. */
export const DAMAGED_BYTES_MAX = 64 * 1024 * 1024

/** Used as the index of a missing tail whose end is unknown. */
export const UNKNOWN_INDEX = Number.MAX_SAFE_INTEGER

/** Outcome of a log repair. */
export interface LogRepair {
  /** The first words of a sentence for the operator: the damaged place and the damage. */
  readonly finding: string
  /** Position of the last entry in the repaired log. */
  readonly kept: Position
  /**
   * Position up to which acknowledged entries may be missing (raft/missing-tail.ts). null: no
   * acknowledged entry is lost. Index `UNKNOWN_INDEX`: any entry of that term may be lost.
   */
  readonly owed: Position | null
  /**
   * Folder with copies of files of the damaged log, as many as fit; null when none could be copied.
   */
  readonly aside: string | null
}

interface RepairedLog {
  readonly disk: FileDisk
  readonly base: Position
  readonly entries: readonly Entry[]
  readonly repair: LogRepair
}

interface Place {
  readonly files: FileSystem
  readonly dir: string
  readonly folder: string
  readonly identity: DataIdentity
  readonly settings: FileDiskOptions
}

/**
 * Replaces a damaged log with one that starts after the state and contains the entries that are
 * certain. One write of the meta slots puts the repair into effect and durably records the missing
 * tail. If a crash comes before this write, the old files are still the log, and the next start
 * finds the damage again; after it, the old files are leftovers.
 * @throws {StoreError}
 */
export function repairLog(
  place: Place,
  log: DamagedLog,
  found: ReadLogMeta,
  state: Position | null,
): RepairedLog {
  const { files, dir, folder, identity, settings } = place
  const { storeId } = identity
  const { meta } = found
  const evidence = findLogEndEvidence(files, folder, { storeId, meta, after: log.until })
  const base = state ?? { term: 0, index: 0 }
  const kept = certainEntriesAfter(base, log, evidence)
  const last = kept.at(-1) ?? base
  const unknown = { term: meta.hardState.term, index: UNKNOWN_INDEX }
  // The missing tail also covers the retained entries until they are written again, because a crash
  // may leave only some of them.
  const best = higherPosition(evidence.best, higherPosition(last, base))
  const owed = evidence.isEndKnown ? best : higherPosition(best, unknown)
  const aside = copyDamagedFiles(place, log.damage.path, evidence.paths)

  files.remove(`${folder}/${PREPARED_SEGMENT_FILE}`)
  const sequence = evidence.newestSegment + 1
  const segment = createSegment(files, folder, new SegmentPreparer(files, folder, settings), {
    storeId,
    sequence,
    isReset: true,
    recordBytes: 0,
    previous: base,
    previousChain: ZERO_CHAIN,
  })
  const slots = new MetaSlots(files, dir, { storeId, ...found })
  const { hardState } = meta
  const boot = meta.boot + 1
  slots.write({
    hardState,
    boot,
    commit: base.index,
    firstSegment: sequence,
    owed,
    synced: { segment: sequence, offset: SEGMENT_HEADER_BYTES },
    last: base,
    isClosed: false,
  })
  files.syncFolder(dir)
  for (const path of evidence.paths) files.remove(path)
  files.syncFolder(folder)

  const disk = new FileDisk(
    files,
    { folder, storeId, meta: slots },
    {
      hardState,
      boot,
      commit: base.index,
      chains: new ReplaceableEntryChains(base, ZERO_CHAIN),
      segments: [{ path: segment.path, sequence, previousIndex: base.index }],
      fd: segment.fd,
      end: SEGMENT_HEADER_BYTES,
      capacity: segment.bytes,
      owed,
    },
    settings,
  )
  disk.write({ token: 0, hardState: null, entries: kept, commit: base.index })
  const isWhole = higherPosition(last, owed) === last
  disk.flush()
  if (isWhole) disk.settle(null)
  if (disk.failure !== null) {
    disk.closeNow()
    throw disk.failure
  }
  const end = { term: last.term, index: last.index }
  const { finding } = log.damage
  return {
    disk,
    base,
    entries: kept,
    repair: { finding, kept: end, owed: isWhole ? null : owed, aside },
  }
}

/**
 * The intact entries after `base`, without entries that a later record may have replaced; none if
 * the log does not contain `base`. The damage may hide the replacing record, and the replaced
 * entries would then be part of the log again.
 */
function certainEntriesAfter(
  base: Position,
  log: DamagedLog,
  evidence: LogEvidence,
): readonly Entry[] {
  const from = base.index - log.base.index
  const known = from === 0 ? log.base : log.entries[from - 1]
  if (known === undefined || known.term !== base.term) return []
  return log.entries.slice(from).filter(({ index }) => index < evidence.lowestAfter)
}

/**
 * Copies the files for later analysis, starting with the damaged file; the copies replace those of
 * an earlier repair. The repair does not depend on the copies: the function stops at the first file
 * for which there is not enough space, or with which the copies would exceed DAMAGED_BYTES_MAX.
 */
function copyDamagedFiles(
  { files, folder, settings }: Place,
  first: string,
  paths: readonly string[],
): string | null {
  const aside = `${folder}/${DAMAGED_NAME}`
  files.remove(aside)
  const others = paths.filter((path) => path !== first).reverse()
  const ordered = paths.includes(first) ? [first, ...others] : others
  try {
    files.makeFolder(aside)
    let keptBytes = 0
    for (const path of ordered) {
      const bytes = readIfReadable(files, path)
      const neededBytes = settings.freeBytesMin + settings.segmentBytes + bytes.length
      const isTooMuch = keptBytes + bytes.length > DAMAGED_BYTES_MAX
      if (isTooMuch || files.freeBytes(folder) < neededBytes) break
      keptBytes += bytes.length
      const copy = `${aside}/${path.slice(folder.length + 1)}`
      const fd = files.open(copy, true)
      files.write(fd, copy, bytes, 0)
      files.close(fd)
    }
    if (keptBytes > 0) return aside
    files.remove(aside)
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
  }
  return null
}

function readIfReadable(files: FileSystem, path: string): Uint8Array {
  try {
    return files.read(path)
  } catch (error) {
    if (error instanceof StoreError && error.code === 'IO') return new Uint8Array(0)
    throw error
  }
}
