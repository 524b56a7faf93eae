import type { Server } from 'node:http'
import { Server as NetServer } from 'node:net'

/**
 * Makes `close` of a server graceful. The server stops accepting connections at once. Open
 * connections may still send a request, which is answered with `Connection: close`; idle
 * connections are closed after `idleMs`. Node.js would close idle connections at once, and a
 * request that is on its way would be lost. The callback of `close` is called when the last
 * connection has ended.
 * @param stop stops accepting, and resolves when the last connection has ended. Only for a server
 * whose connections another server accepts.
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
      // Stops the HTTP server's periodic connection checks. The error that the server is not
      // listening any more is ignored.
      closeAtOnce(() => undefined)
      done?.()
    })
    return server
  }
}

/** Calls the original `close` of a TCP server, which waits until all connections have ended. */
function stopListening(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  NetServer.prototype.close.call(server, () => resolve())
  return promise
}
