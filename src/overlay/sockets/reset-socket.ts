import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

/**
 * Closes a socket so that its peer notices that the connection failed and that data may be
 * missing.
 */
export function resetSocket(socket: Socket): void {
  // A TLS peer notices it without a reset, because the close_notify alert is missing.
  if (socket instanceof TLSSocket) socket.destroy()
  else socket.resetAndDestroy()
}
