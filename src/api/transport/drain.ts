import type { Server } from 'node:http'
import { Server as NetServer } from 'node:net'

/**
 * Makes `close` of a server gentle: at once it accepts no more connections, but those that stand
 * may still bring a request, which is answered with `Connection: close`; only after `idleMs` are
 * the ones that are silent ended. Node ends them at once, and a request that is on its way by then
 * is lost to its client.
 *
 * Resolves the callback of `close` when the last connection has ended.
 */
export function closeGently(server: Server, idleMs: number): void {
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
