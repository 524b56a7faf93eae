import { createHash } from 'node:crypto'
import { connect, createServer, type Server } from 'node:net'

import { startListening } from '../../lib/runtime/listening.ts'

type LockedProgram = 'quickstart' | 'router'

/**
 * Acquires a lock for a path: an abstract Unix socket whose name contains the user ID and a hash of
 * the path. The kernel gives the socket to one process of the user and releases it when the process
 * ends for any reason, so no stale lock remains.
 * @param path real path, without symbolic links.
 * @returns the lock, which does not keep the process alive. Rejects when another process of the
 * user holds the lock.
 */
export async function acquirePathLock(program: LockedProgram, path: string): Promise<Server> {
  const server = createServer((socket) => socket.destroy())
  await startListening(server, { path: lockAddress(program, path, process.getuid?.() ?? 0) })
  server.on('error', () => undefined)
  server.unref()
  return server
}

/** Whether a process of one of these users holds the lock of the path. */
export async function isPathLocked(
  program: LockedProgram,
  path: string,
  userIds: readonly number[],
): Promise<boolean> {
  const held = await Promise.all(
    [...new Set(userIds)].map((userId) => isConnectable(lockAddress(program, path, userId))),
  )
  return held.includes(true)
}

function lockAddress(program: LockedProgram, path: string, userId: number): string {
  const name = createHash('sha256').update(path).digest('hex').slice(0, 32)
  return `\0flotilla-${program}-${userId}-${name}`
}

async function isConnectable(address: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect({ path: address })
  socket.once('connect', () => resolve(true))
  // Other errors, such as EAGAIN of a full queue, do not show that no process listens.
  socket.once('error', (error) => resolve(!isNotListening(error)))
  try {
    return await promise
  } finally {
    socket.destroy()
  }
}

function isNotListening(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ECONNREFUSED' || error.code === 'ENOENT'
}
