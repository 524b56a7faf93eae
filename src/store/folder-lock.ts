import { readFileSync, writeFileSync } from 'node:fs'
import { StoreError } from './errors.ts'
import { openDatabase } from './level-database.ts'

export interface FolderLock {
  release(): Promise<void>
}

const HOLDER_NAME = 'holder'

/**
 * One process at a time works on a data folder. Rests on the lock of an empty LevelDB, which the system takes back when
 * its process dies in whatever way, and which holds across containers that share the folder but not process ids.
 * @throws {StoreError} IN_USE.
 */
export async function lockDataFolder(dir: string): Promise<FolderLock> {
  const path = `${dir}/lock`
  try {
    const database = await openDatabase(path)
    // Only for the sentence that a second process shows.
    writeFileSync(`${path}/${HOLDER_NAME}`, `${process.pid}\n`, { mode: 0o600 })
    return { release: () => database.close() }
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== 'IN_USE') throw error
    throw new StoreError(
      'IN_USE',
      dir,
      `the data folder ${dir} is in use by another process${holderOf(path)}: a controller runs on it already; stop that one first.`,
      error,
    )
  }
}

function holderOf(path: string): string {
  try {
    return ` (pid ${readFileSync(`${path}/${HOLDER_NAME}`, 'utf8').trim()})`
  } catch {
    return ''
  }
}
