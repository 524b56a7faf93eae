import { readFileSync, writeFileSync } from 'node:fs'
import { StoreError } from '../errors.ts'
import { openDatabase } from '../state/level-database.ts'

interface FolderLock {
  release(): Promise<void>
}

const LOCK_NAME = 'lock'
const HOLDER_NAME = 'holder'

/**
 * Locks a data folder for one process, with the lock of an empty LevelDB database. The system
 * releases the lock when the process ends for any reason, and the lock also works between
 * containers that share the folder but not process ids.
 * @throws {StoreError} IN_USE.
 */
export async function lockDataFolder(dir: string): Promise<FolderLock> {
  const path = `${dir}/${LOCK_NAME}`
  try {
    const database = await openDatabase(path)
    // The error message of a second process contains the process id, and commands such as
    // quickstart use it to find a running controller.
    writeFileSync(`${path}/${HOLDER_NAME}`, `${process.pid}\n`, { mode: 0o600 })
    return { release: () => database.close() }
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== 'IN_USE') throw error
    const holder = lastLockHolder(dir)
    throw new StoreError(
      'IN_USE',
      dir,
      `the data folder ${dir} is in use by another process${holder === null ? '' : ` (pid ${holder})`}; a controller is running on it, stop that one first.`,
      error,
    )
  }
}

/**
 * Reads the process id from the folder's lock.
 * @returns id of the process that last had the lock and may have ended since; null when unknown.
 */
export function lastLockHolder(dir: string): number | null {
  try {
    return parsePid(readFileSync(`${dir}/${LOCK_NAME}/${HOLDER_NAME}`, 'utf8'))
  } catch {
    return null
  }
}

/**
 * Parses a process id.
 * @returns null unless the text is exactly one process id.
 */
export function parsePid(text: string): number | null {
  const trimmed = text.trim()
  return /^[1-9][0-9]{0,9}$/.test(trimmed) ? Number(trimmed) : null
}
