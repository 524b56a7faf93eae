import { readFileSync } from 'node:fs'

/** Mask and shift for the encoding of device numbers in Linux. */
const MINOR_LOW = 0xff
const MAJOR_SHIFT = 8

/**
 * Whether another process has a lock on the file, as a running controller does. Only Linux lists
 * locks; on other systems, and for processes that are not visible to this one, the result is false.
 */
export function isFileLocked({
  device,
  inode,
}: {
  readonly device: number
  readonly inode: number
}): boolean {
  let text: string
  try {
    text = readFileSync('/proc/locks', 'utf8')
  } catch {
    return false
  }
  return lockedInodes(text).has(`${deviceText(device)}:${inode}`)
}

/**
 * Returns `major:minor:inode` of each locked file, from the lines of `/proc/locks`. An example of
 * such a line is `1: FLOCK ADVISORY WRITE 812 08:01:1234 0 EOF`.
 */
export function lockedInodes(text: string): ReadonlySet<string> {
  return new Set(
    [...text.matchAll(/^\d+:\s+(?!->)\S+\s+\S+\s+\S+\s+-?\d+\s+([0-9a-f]+:[0-9a-f]+:\d+)\s/gm)].map(
      ([, file]) => file ?? '',
    ),
  )
}

function deviceText(device: number): string {
  const low = device % 0x1_0000_0000
  const major = (low >>> MAJOR_SHIFT) & 0xfff
  const minor = (low & MINOR_LOW) | ((low >>> 12) & 0xf_ff00)
  const hex = (value: number): string => value.toString(16).padStart(2, '0')
  return `${hex(major)}:${hex(minor)}`
}
