import type { Socket } from 'node:dgram'

import type { HostPort } from '../../lib/text/names.ts'

/**
 * Binds a socket; an error of later is its owner's to take.
 * @throws what stands against it; the socket is closed.
 */
export async function bindDatagrams(socket: Socket, { host, port }: HostPort): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.once('error', reject)
  socket.bind(port, host, resolve)
  try {
    await promise
  } catch (error) {
    socket.close()
    throw error
  }
  socket.off('error', reject)
}
