import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Memory figures of one process from the system, in KiB. */
export interface ProcessMemory {
  readonly rssKib: number
  /** The most that `rssKib` has ever been. */
  readonly peakKib: number
  /** Of `rssKib`: backed by nothing but memory. */
  readonly anonymousKib: number
}

/** @returns null when there is no such process. */
export function processMemory(pid: number): ProcessMemory | null {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    return null
  }
  const kib = (name: string): number | null => {
    const found = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1]
    return found === undefined ? null : Number(found)
  }
  const [rssKib, peakKib, anonymousKib] = [kib('VmRSS'), kib('VmHWM'), kib('RssAnon')]
  // One that has ended and was not yet waited for has no memory any more.
  if (rssKib === null || peakKib === null || anonymousKib === null) return null
  return { rssKib, peakKib, anonymousKib }
}

/** Size of the files in a folder, without files that disappear meanwhile. */
export function folderBytes(folder: string): number {
  let bytes = 0
  for (const name of readdirSync(folder)) {
    try {
      bytes += statSync(join(folder, name)).size
    } catch {
      // Removed between the listing and the look.
    }
  }
  return bytes
}

/** A sample of the Prometheus text format. @returns 0 when it is not there. */
export function metric(text: string, name: string): number {
  for (const line of text.split('\n')) {
    if (line.startsWith(`${name} `)) return Number(line.slice(name.length + 1))
  }
  return 0
}
