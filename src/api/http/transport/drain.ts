import type { Server } from 'node:http'
import { Server as NetServer } from 'node:net'

/**
 * Makes `close` of a server graceful. It stops accepting connections at once. Open connections may
 * still send a request, which is answered with `Connection: close`; idle ones are closed after
 * `idleMs`. Node would close idle connections at once, and a request already on its way would be
 * lost. The callback of `close` is called when the last connection has ended.
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
      // Ends the connection checks of the HTTP server. Its error, that the server does not listen
      // any more, is ignored.
      closeAtOnce(() => undefined)
      done?.()
    })
    return server
  }
}

/** The plain `close` of a TCP server, which waits until all connections have ended. */
function stopListening(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  NetServer.prototype.close.call(server, () => resolve())
  return promise
}
