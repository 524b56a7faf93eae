import { createHash } from 'node:crypto'
import { createServer, type Server } from 'node:net'

import { listenAt } from '../../lib/runtime/listening.ts'

/**
 * A lock on an abstract unix socket, named after the real path. The kernel gives it to one process
 * of a user and releases it when the process ends for any reason, so no stale lock remains.
 * @returns the lock, which does not keep the process alive. Rejects when another process has it.
 */
export async function lockPath(program: 'quickstart' | 'router', path: string): Promise<Server> {
  const name = createHash('sha256').update(path).digest('hex').slice(0, 32)
  const server = createServer((socket) => socket.destroy())
  await listenAt(server, { path: `\0flotilla-${program}-${process.getuid?.() ?? 0}-${name}` })
  server.on('error', () => undefined)
  server.unref()
  return server
}
