import {
  closeSync,
  fchmodSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'

/** Writes a file that all may read, whole or not at all and on disk when this returns. @throws the file system's error. */
export function writePublicFile(path: string, text: string): void {
  const partial = `${path}.${process.pid}.partial`
  rmSync(partial, { force: true })
  const file = openSync(partial, 'wx', 0o644)
  try {
    fchmodSync(file, 0o644)
    writeFileSync(file, text)
    fsyncSync(file)
  } catch (error) {
    rmSync(partial, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
  renameSync(partial, path)
  syncFolder(dirname(path))
}

/** Makes what was renamed or removed in a folder outlive a power cut. */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
