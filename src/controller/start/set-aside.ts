import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

import { syncFolder } from '../../pki/secret-file.ts'

const KEPT_MAX = 2

/** A time in the format of {@link timeOf}. */
const TIME = /^\d{8}T\d{6}\.\d{3}Z$/

/** Whether the data folder is missing or empty, for example after the loss of a disk. */
export function hasNoData(dataFolder: string): boolean {
  return !existsSync(dataFolder) || readdirSync(dataFolder).length === 0
}

/**
 * Renames a file or folder to `<name>.set-aside-<UTC time>` in the same parent folder, and keeps
 * only the two newest with this name. No program may be using it.
 * @returns the new path.
 * @throws the file system's error; nothing has changed unless only the sync of the folder failed.
 * An older one that cannot be removed is not an error.
 */
export function setAside(path: string, nowMs: number): string {
  const parent = dirname(path)
  const prefix = `${basename(path)}.set-aside-`
  const standing = readdirSync(parent).filter(
    (name) => name.startsWith(prefix) && TIME.test(name.slice(prefix.length)),
  )
  let atMs = nowMs
  while (standing.includes(prefix + timeOf(atMs))) atMs += 1
  const name = prefix + timeOf(atMs)
  renameSync(path, join(parent, name))
  syncFolder(parent)
  const surplus = standing.sort().slice(0, Math.max(0, standing.length - (KEPT_MAX - 1)))
  for (const old of surplus) removeIfPossible(join(parent, old))
  return join(parent, name)
}

function removeIfPossible(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch {
    // The next call tries again.
  }
}

/** The time in a form whose alphabetical order is the order of time. */
function timeOf(ms: number): string {
  return new Date(ms).toISOString().replaceAll(/[-:]/g, '')
}
