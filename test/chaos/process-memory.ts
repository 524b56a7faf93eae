import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Memory usage of one process according to the operating system, in KiB. */
export interface ProcessMemory {
  readonly rssKib: number
  /** Maximum of `rssKib` since the start of the process. */
  readonly peakKib: number
  /** Part of `rssKib` that is not backed by files. */
  readonly anonymousKib: number
}

/** @returns null when the process does not exist. */
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
  // A process that has ended and whose parent has not waited for it has no memory.
  if (rssKib === null || peakKib === null || anonymousKib === null) return null
  return { rssKib, peakKib, anonymousKib }
}

/** Size of the files in a folder, without files that disappear during the call. */
export function folderBytes(folder: string): number {
  let bytes = 0
  for (const name of readdirSync(folder)) {
    try {
      bytes += statSync(join(folder, name)).size
    } catch {
      // The file was removed after the folder was listed.
    }
  }
  return bytes
}

/** Value of a sample in the Prometheus text format. @returns 0 when the sample does not exist. */
export function metric(text: string, name: string): number {
  for (const line of text.split('\n')) {
    if (line.startsWith(`${name} `)) return Number(line.slice(name.length + 1))
  }
  return 0
}
