import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes a folder and those above it, one after the other. Node's own way (`recursive`) never
 * returns where the system says that a folder is not there and cannot be made, as below /proc.
 * @throws the file system's error.
 */
export function makeFolder(path: string, mode = 0o777): void {
  const status = statSync(path, { throwIfNoEntry: false })
  if (status?.isDirectory() === true) return
  const parent = dirname(path)
  if (parent !== path) makeFolder(parent, mode)
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    // Somebody else may have made it meanwhile.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error
  }
}
