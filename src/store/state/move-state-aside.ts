import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { nodeFileSystem, type FileSystem } from '../file-system.ts'
import { STATE_FOLDER_NAME } from './level-state-store.ts'

/** Folder, in the data folder, that receives the last damaged state. */
const DAMAGED_STATE_NAME = 'state.damaged'

/**
 * Moves the state out of a data folder durably and in one step, so that the next open finds an
 * empty state. Keeps the damaged state for analysis, in place of an earlier one, or removes both if
 * too little space would remain for the new state. The caller must hold the folder's lock.
 * @returns the new path; null when the state was removed.
 */
export function moveStateAside(
  dir: string,
  freeBytesMin: number,
  files: FileSystem = nodeFileSystem,
): string | null {
  const aside = `${dir}/${DAMAGED_STATE_NAME}`
  const state = `${dir}/${STATE_FOLDER_NAME}`
  files.remove(aside)
  const hasSpace = files.freeBytes(dir) >= freeBytesMin + folderBytes(state)
  files.rename(state, aside)
  files.syncFolder(dir)
  if (hasSpace) return aside
  files.remove(aside)
  return null
}

function folderBytes(folder: string): number {
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return found.reduce((bytes, name) => bytes + lstatSync(join(folder, name)).size, 0)
}
