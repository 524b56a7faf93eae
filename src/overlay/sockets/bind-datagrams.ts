import type { Socket } from 'node:dgram'

import type { HostPort } from '../../lib/text/names.ts'

/**
 * Binds a socket to an address. The caller must handle later errors.
 * @throws the system error, after closing the socket.
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
