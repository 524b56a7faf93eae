import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { nodeFileSystem, type FileSystem } from '../file-system.ts'
import { STATE_NAME } from './level-state-store.ts'

/** Beside the state: what was taken for damaged last. */
export const DAMAGED_STATE_NAME = 'state.damaged'

/**
 * Takes the state out of a data folder, durably and in one step: the next one to be opened is
 * empty. It is kept for whoever wants to look into the damage, in place of an earlier one, unless
 * too little space would be left for filling the new one. The caller holds the lock of the folder.
 * @returns where it is; null when it was removed.
 */
export function setStateAside(
  dir: string,
  freeBytesMin: number,
  files: FileSystem = nodeFileSystem,
): string | null {
  const aside = `${dir}/${DAMAGED_STATE_NAME}`
  const state = `${dir}/${STATE_NAME}`
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
