import { readFileSync, writeFileSync } from 'node:fs'
import { StoreError } from '../errors.ts'
import { openDatabase } from '../state/level-database.ts'

export interface FolderLock {
  release(): Promise<void>
}

const LOCK_NAME = 'lock'
const HOLDER_NAME = 'holder'

/**
 * One process at a time works on a data folder. Rests on the lock of an empty LevelDB, which the
 * system takes back when its process dies in whatever way, and which holds across containers that
 * share the folder but not process ids.
 * @throws {StoreError} IN_USE.
 */
export async function lockDataFolder(dir: string): Promise<FolderLock> {
  const path = `${dir}/${LOCK_NAME}`
  try {
    const database = await openDatabase(path)
    // For the sentence that a second process shows, and for quickstart, which takes up a controller
    // that it finds running.
    writeFileSync(`${path}/${HOLDER_NAME}`, `${process.pid}\n`, { mode: 0o600 })
    return { release: () => database.close() }
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== 'IN_USE') throw error
    const holder = lockHolderOf(dir)
    throw new StoreError(
      'IN_USE',
      dir,
      `the data folder ${dir} is in use by another process${holder === null ? '' : ` (pid ${holder})`}; a controller is running on it, stop that one first.`,
      error,
    )
  }
}

/**
 * @returns the process that took the lock last, which may have ended since; null when none is
 * known.
 */
export function lockHolderOf(dir: string): number | null {
  try {
    return pidIn(readFileSync(`${dir}/${LOCK_NAME}/${HOLDER_NAME}`, 'utf8'))
  } catch {
    return null
  }
}

/** @returns null for anything but one process id. */
export function pidIn(text: string): number | null {
  const trimmed = text.trim()
  return /^[1-9][0-9]{0,9}$/.test(trimmed) ? Number(trimmed) : null
}
