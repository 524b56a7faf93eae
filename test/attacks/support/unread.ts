import type { Socket } from 'node:net'

import { type AttackedListener, until } from './listener.ts'

/** Number of equal observations after which a connection counts as stuck. */
const LOOKS = 25

/**
 * A connection that sends requests and reads no response, until the kernel buffers no more of the
 * responses.
 */
export async function stuckConnection(
  { accepted, connect }: Pick<AttackedListener, 'accepted' | 'connect'>,
  request: string,
): Promise<void> {
  const known = accepted.length
  const socket = await connect()
  socket.pause()
  await until(() => accepted.length > known)
  const end = accepted[known] as Socket
  do {
    const { bytesWritten } = end
    let looks = 0
    socket.write(request)
    await until(() => {
      if (end.bytesWritten === bytesWritten) return false
      looks += 1
      return end.writableLength === 0 || looks > LOOKS
    })
  } while (end.writableLength === 0)
}
