import type { RestoredLog } from '../../../src/raft/types.ts'
import type { FileDisk } from '../../../src/store/log/file-disk.ts'
import { lockDataFolder } from '../../../src/store/folder/folder-lock.ts'
import { readDataIdentity, type DataIdentity } from '../../../src/store/log/data-identity.ts'
import { LevelStateStore } from '../../../src/store/state/level-state-store.ts'
import { type StateStoreOptions } from '../../../src/store/state/level-records.ts'
import { openLog, type LogOptions } from '../../../src/store/log/open-log.ts'

export interface DataFolderOptions {
  readonly log?: Omit<LogOptions, 'statePosition' | 'stateCameBySnapshot'>
  readonly state?: StateStoreOptions
}

export interface DataFolder {
  readonly identity: DataIdentity
  readonly restored: RestoredLog
  readonly disk: FileDisk
  readonly stateStore: LevelStateStore
  /** Bytes of a torn write that the start removed from the end of the log. */
  readonly cutBytes: number
  close(): Promise<void>
}

/**
 * Opens all parts of a data folder on one thread, in the order in which the program opens them on
 * several.
 */
export async function openDataFolder(
  dir: string,
  options: DataFolderOptions = {},
): Promise<DataFolder> {
  // The identity is read before locking, because locking would create a missing folder.
  readDataIdentity(dir)
  const lock = await lockDataFolder(dir)
  try {
    const stateStore = await LevelStateStore.open(dir, options.state)
    try {
      const statePosition = stateStore.mark()?.position ?? null
      const stateCameBySnapshot = stateStore.cameBySnapshot()
      const ofState = { statePosition, stateCameBySnapshot }
      const { identity, restored, disk, cutBytes } = openLog(dir, { ...options.log, ...ofState })
      const close = async (): Promise<void> => {
        disk.closeNow()
        await stateStore.close()
        await lock.release()
      }
      return { identity, restored, disk, stateStore, cutBytes, close }
    } catch (error) {
      await stateStore.close()
      throw error
    }
  } catch (error) {
    await lock.release()
    throw error
  }
}
