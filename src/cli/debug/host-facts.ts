import { lstatSync, readdirSync, statfsSync } from 'node:fs'
import { arch, availableParallelism, freemem, loadavg, release, totalmem, uptime } from 'node:os'
import { join } from 'node:path'

import type { ControllerConfig } from '../../config/controller/options.ts'
import { programRevision, programVersion } from '../../controller/version.ts'

const LISTED_MAX = 10_000
/** Bytes from the end of the log file. */
export const LOG_TAIL_BYTES = 2 * 1024 * 1024

/** This program and the machine that it runs on. */
export function hostFacts({ data }: ControllerConfig): unknown {
  const { bavail, blocks, bsize } = statfsSync(data)
  return {
    program: { version: programVersion(), revision: programRevision(), node: process.version },
    system: { platform: process.platform, arch: arch(), release: release(), load: loadavg() },
    processors: availableParallelism(),
    uptimeSeconds: Math.round(uptime()),
    memory: { totalBytes: totalmem(), freeBytes: freemem() },
    dataFolder: { freeBytes: bavail * bsize, totalBytes: blocks * bsize },
    // The values may be secret; the names explain differences from the file.
    variables: Object.keys(process.env)
      .filter((name) => name.startsWith('FLOTILLA_'))
      .sort(),
  }
}

/**
 * Names, sizes, modes and times of everything below a folder, one line each, without file contents.
 */
export function listingOf(folder: string): string {
  const lines: string[] = []
  const visit = (path: string, shown: string): void => {
    for (const name of readdirSync(path).sort()) {
      if (lines.length >= LISTED_MAX) return
      const found = lstatSync(join(path, name))
      const mode = (found.mode & 0o777).toString(8)
      const time = found.mtime.toISOString()
      const kind = found.isDirectory() ? 'd' : found.isFile() ? '-' : '?'
      lines.push(`${kind} ${mode} ${String(found.size).padStart(12)} ${time} ${shown}${name}`)
      if (found.isDirectory()) visit(join(path, name), `${shown}${name}/`)
    }
  }
  visit(folder, '')
  return `${lines.join('\n')}\n`
}
