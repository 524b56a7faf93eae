import type { Server } from 'node:http'
import { Server as NetServer } from 'node:net'

/**
 * Makes `close` of a server graceful. It stops accepting connections at once. Open connections may
 * still send a request, which is answered with `Connection: close`; idle ones are closed after
 * `idleMs`. Node would close idle connections at once, and a request already on its way would be
 * lost. The callback of `close` is called when the last connection has ended.
 */
export function makeCloseGraceful(server: Server, idleMs: number): void {
  const closeAtOnce = server.close.bind(server)
  server.close = (done) => {
    const timer = setTimeout(() => server.closeIdleConnections(), idleMs)
    // The plain one of a TCP server: it stops listening and waits for connections to end by
    // themselves.
    NetServer.prototype.close.call(server, (error) => {
      clearTimeout(timer)
      // Connection checks of the HTTP server end here; that it no longer listens is
      // no news.
      closeAtOnce(() => undefined)
      done?.(error)
    })
    return server
  }
}
