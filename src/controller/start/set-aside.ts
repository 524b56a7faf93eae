import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

import { syncFolder } from '../../pki/secret-file.ts'

const KEPT_MAX = 2

/** Whether the data folder is missing or empty, for example after the loss of a disk. */
export function hasNoData(dataFolder: string): boolean {
  return !existsSync(dataFolder) || readdirSync(dataFolder).length === 0
}

/**
 * Renames a data folder that the cluster refuses to `<data>.set-aside-<UTC time>` in the same
 * parent folder, and keeps only the two newest such folders. No controller may be running on the
 * folder.
 * @returns the new path.
 * @throws the file system's error.
 */
export function setDataFolderAside(dataFolder: string, nowMs: number): string {
  const parent = dirname(dataFolder)
  const prefix = `${basename(dataFolder)}.set-aside-`
  const standing = readdirSync(parent).filter((name) => name.startsWith(prefix))
  let atMs = nowMs
  while (standing.includes(prefix + timeOf(atMs))) atMs += 1
  const name = prefix + timeOf(atMs)
  renameSync(dataFolder, join(parent, name))
  syncFolder(parent)
  const surplus = standing.sort().slice(0, Math.max(0, standing.length - (KEPT_MAX - 1)))
  for (const old of surplus) rmSync(join(parent, old), { recursive: true, force: true })
  return join(parent, name)
}

/** The time in a form whose alphabetical order is the order of time. */
function timeOf(ms: number): string {
  return new Date(ms).toISOString().replaceAll(/[-:]/g, '')
}
