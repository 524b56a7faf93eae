import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

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
