import { mkdirSync, statSync } from 'node:fs'
import { lstat, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'

/**
 * Creates a folder and its parents, one after the other. Node's `recursive` option is not used: it
 * never returns if the system reports that a folder does not exist and cannot be created, as below
 * /proc.
 * @throws the error from the file system.
 */
export function makeFolder(path: string, mode = 0o777): void {
  const status = statSync(path, { throwIfNoEntry: false })
  if (status?.isDirectory() === true) return
  const parent = dirname(path)
  if (parent !== path) makeFolder(parent, mode)
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    // Another process may have created the folder meanwhile.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error
  }
}

/**
 * Refuses a target file that exists, or whose folder does not exist.
 * @throws {CommandFailure} exit 1.
 */
export async function refuseExistingFile(path: string): Promise<void> {
  const folder = await stat(dirname(path)).catch(() => null)
  if (folder?.isDirectory() !== true) {
    throw new CommandFailure(
      EXIT_FAILED,
      `the folder ${dirname(path)} does not exist; create it, or choose another location`,
    )
  }
  const found = await lstat(path).catch(() => null)
  if (found === null) return
  throw new CommandFailure(EXIT_FAILED, `${path} already exists; choose another file`)
}
