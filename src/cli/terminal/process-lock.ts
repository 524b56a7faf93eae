import { createHash } from 'node:crypto'
import { createServer, type Server } from 'node:net'

import { startListening } from '../../lib/runtime/listening.ts'

/**
 * Acquires a lock for a path: an abstract Unix socket whose name contains the real path. The kernel
 * gives the socket to one process of a user and releases it when the process ends for any reason,
 * so no stale lock remains.
 * @returns the lock, which does not keep the process alive. Rejects when another process holds the
 * lock.
 */
export async function acquirePathLock(
  program: 'quickstart' | 'router',
  path: string,
): Promise<Server> {
  const name = createHash('sha256').update(path).digest('hex').slice(0, 32)
  const server = createServer((socket) => socket.destroy())
  await startListening(server, { path: `\0flotilla-${program}-${process.getuid?.() ?? 0}-${name}` })
  server.on('error', () => undefined)
  server.unref()
  return server
}
