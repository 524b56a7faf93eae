import type { Entry, HardState, Index, Position } from '../../raft/types.ts'
import { higherPosition } from './log-evidence.ts'
import { nodeFileSystem, type FileSystem } from '../file-system.ts'
import { readDataIdentity, type DataIdentity } from './data-identity.ts'
import { readLogMetadata } from './meta-slots.ts'
import { logFolder } from './open-log.ts'
import { recoverLog } from './recovery.ts'

/** Contents of a stopped controller's log. */
export interface InspectedLog {
  readonly identity: DataIdentity
  readonly hardState: HardState
  /** Commit index that this member had recorded. */
  readonly commit: Index
  readonly base: Position
  /** The entries after `base`; in a damaged log, only those before the damage. */
  readonly entries: readonly Entry[]
  readonly last: Position
  /** Description of the damage; null if there is none. */
  readonly finding: string | null
  /**
   * Whether an earlier start recorded a missing tail (raft/missing-tail.ts) that the log still
   * lacks. Damage that `finding` describes is not included.
   */
  readonly hasMissingTail: boolean
}

/**
 * Reads the log of a data folder without changing anything. The caller must hold the folder's lock.
 * @throws {StoreError} MISSING, FOREIGN, NEWER_FORMAT, VOTE_LOST, or CORRUPT for a damaged
 * identity.
 */
export function inspectLog(dir: string, files: FileSystem = nodeFileSystem): InspectedLog {
  const identity = readDataIdentity(dir, files)
  const { meta } = readLogMetadata(files, dir, identity.storeId)
  const log = recoverLog(files, logFolder(dir), identity.storeId, meta)
  const { base, entries } = log
  const end = entries.at(-1) ?? base
  const last = { term: end.term, index: end.index }
  return {
    identity,
    hardState: meta.hardState,
    commit: meta.commit,
    base,
    entries,
    last,
    finding: 'damage' in log ? log.damage.finding : null,
    hasMissingTail: meta.owed !== null && higherPosition(last, meta.owed) !== last,
  }
}
