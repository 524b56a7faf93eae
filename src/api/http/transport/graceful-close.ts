import type { Server } from 'node:http'
import { Server as NetServer } from 'node:net'

/**
 * Makes `close` of a server graceful. The server stops accepting connections immediately. Clients
 * may still send a request on open connections, and the response contains `Connection: close`; idle
 * connections are closed after `idleMs`. Without this, Node.js would close idle connections
 * immediately, and a request in transit would be lost. The callback of `close` is called when the
 * last connection has closed.
 * @param stop stops accepting connections, and resolves when the last one has closed. Only for a
 * server that gets its connections from another server.
 */
export function makeCloseGraceful(
  server: Server,
  idleMs: number,
  stop = (): Promise<void> => stopListening(server),
): void {
  const closeAtOnce = server.close.bind(server)
  server.close = (done) => {
    const timer = setTimeout(() => server.closeIdleConnections(), idleMs)
    void stop().then(() => {
      clearTimeout(timer)
      // Stops the HTTP server's periodic connection checks. Ignores the error that the server does
      // not listen.
      closeAtOnce(() => undefined)
      done?.()
    })
    return server
  }
}

/** Calls the original `close` of a TCP server, which waits until all connections have closed. */
function stopListening(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  NetServer.prototype.close.call(server, () => resolve())
  return promise
}
