import type { Server, Socket } from 'node:net'
import { sourceOf } from '../auth/source.ts'
import type { ApiLimits } from '../limits.ts'

type ConnectionLimits = Pick<ApiLimits, 'connectionsPerSourceMax' | 'handshakeTimeoutMs'>

/**
 * Bounds how many connections one source holds, and how long a TLS handshake may take. The deadline
 * counts from the first packet: Node's own handshake timeout starts again with each byte, and
 * leaves the connection open when it expires.
 *
 * @param isTls false for plain HTTP, where there is no handshake to wait for.
 */
export function boundConnections(server: Server, isTls: boolean, limits: ConnectionLimits): void {
  const countBySource = new Map<string, number>()
  /**
   * By remote address and port: the events of one connection name different sockets before and
   * after the handshake.
   */
  const handshakes = new Map<string, NodeJS.Timeout>()
  const endHandshake = (endpoint: string): void => {
    clearTimeout(handshakes.get(endpoint))
    handshakes.delete(endpoint)
  }
  server.on('connection', (socket: Socket) => {
    const source = sourceOf(socket.remoteAddress ?? '')
    const count = countBySource.get(source) ?? 0
    if (count >= limits.connectionsPerSourceMax) {
      socket.destroy()
      return
    }
    countBySource.set(source, count + 1)
    const endpoint = endpointOf(socket)
    if (isTls) {
      handshakes.set(
        endpoint,
        setTimeout(() => socket.destroy(), limits.handshakeTimeoutMs),
      )
    }
    socket.once('close', () => {
      endHandshake(endpoint)
      const left = (countBySource.get(source) ?? 0) - 1
      if (left > 0) countBySource.set(source, left)
      else countBySource.delete(source)
    })
  })
  server.on('secureConnection', (socket: Socket) => {
    endHandshake(endpointOf(socket))
  })
}

function endpointOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? ''} ${remotePort ?? 0}`
}
