import { statfsSync } from 'node:fs'
import { arch, availableParallelism, freemem, loadavg, release, totalmem, uptime } from 'node:os'

import { programRevision, programVersion } from '../../controller/version.ts'

/** One file of a debug bundle. */
export interface DebugBundleFile {
  readonly name: string
  /** @throws any error; the bundle then contains its message instead of the file. */
  readonly read: () => unknown
}

/** The program that a bundle describes. */
export interface DebugBundleSubject {
  readonly kind: 'controller' | 'router' | 'tunnel'
  readonly id: string
  readonly parts: readonly DebugBundleFile[]
}

/**
 * Facts about the installed program and this machine.
 * @param folder folder on the file system whose free space is reported.
 */
export function hostFacts(folder: string): unknown {
  const { bavail, blocks, bsize } = statfsSync(folder)
  return {
    program: { version: programVersion(), revision: programRevision(), node: process.version },
    system: { platform: process.platform, arch: arch(), release: release(), load: loadavg() },
    processors: availableParallelism(),
    uptimeSeconds: Math.round(uptime()),
    memory: { totalBytes: totalmem(), freeBytes: freemem() },
    dataFolder: { freeBytes: bavail * bsize, totalBytes: blocks * bsize },
    // Only the names of environment variables, because a value may be secret. The names help to
    // explain why an option differs from the configuration file.
    variables: Object.keys(process.env)
      .filter((name) => name.startsWith('FLOTILLA_'))
      .sort(),
  }
}
