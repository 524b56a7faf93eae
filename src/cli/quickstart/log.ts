import { copyFileSync, renameSync, statSync, truncateSync } from 'node:fs'

/** A log larger than this is put aside, in the place of the older one that was. */
export const LOG_BYTES_MAX = 16 * 1024 * 1024

/** @param path of a log that nobody writes. */
export function putLogAside(path: string): void {
  if (isTooLarge(path)) renameSync(path, asideOf(path))
}

/**
 * Of a log that a running process appends to, and goes on appending to: it is copied and emptied. A
 * line that is written in between is lost, which is why operators that need each line keep the
 * output of the controllers themselves.
 */
export function copyLogAside(path: string): void {
  if (!isTooLarge(path)) return
  copyFileSync(path, asideOf(path))
  truncateSync(path)
}

const asideOf = (path: string): string => `${path}.1`

function isTooLarge(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > LOG_BYTES_MAX
}
