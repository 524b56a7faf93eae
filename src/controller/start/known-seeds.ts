import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import type { ControllerConfig } from '../../config/controller/options.ts'
import { parseHostPort } from '../../lib/text/names.ts'

/** Maximum number of seeds, as in the configuration. */
export const SEEDS_MAX = 32
const BYTES_MAX = 64 * 1024

interface Located {
  readonly id: string
  readonly identity: Pick<ControllerConfig['identity'], 'key'>
}

export interface SeedsConfig extends Located {
  readonly cluster: Pick<ControllerConfig['cluster'], 'seeds'>
}

/**
 * Path of the seeds file. It is in the folder of the key, which survives the loss of the data
 * folder.
 */
export function seedsPath({ id, identity }: Located): string {
  return join(dirname(identity.key), `${id}.seeds`)
}

/** Mesh addresses (host:port) of other members; empty if the file is missing or unreadable. */
export function readSeeds(config: Located): readonly string[] {
  let text: string
  try {
    text = readFileSync(seedsPath(config), 'utf8').slice(0, BYTES_MAX)
  } catch {
    return []
  }
  const lines = text.split('\n').map((line) => line.trim())
  return lines.filter((line) => parseHostPort(line) !== null).slice(0, SEEDS_MAX)
}

/**
 * Addresses at which a controller without data can request admission. The configured addresses come
 * first.
 */
export function knownSeeds(config: SeedsConfig): readonly string[] {
  return [...new Set([...config.cluster.seeds, ...readSeeds(config)])]
}
