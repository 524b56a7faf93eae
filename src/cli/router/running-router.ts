import { type Stats, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

import { isPathLocked } from '../terminal/process-lock.ts'

/**
 * Whether a router with this configuration runs on this host: as the user of this process, as root,
 * or as the owner of the file or of its folder.
 */
export async function isRouterRunning(path: string): Promise<boolean> {
  const realPath = realpathSync(path)
  const owners = [statSync(realPath), statSync(dirname(realPath))].map(({ uid }: Stats) => uid)
  return await isPathLocked('router', realPath, [process.getuid?.() ?? 0, 0, ...owners])
}
