import type { Socket } from 'node:net'

import { type AttackedListener, until } from './listener.ts'

/** How often the same is seen of a connection before it counts as one that stands still. */
const LOOKS = 25

/**
 * A connection that sends requests until the kernel buffers no more of the answers, which it never
 * reads.
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
