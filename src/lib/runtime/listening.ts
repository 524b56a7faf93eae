import type { ListenOptions, Server } from 'node:net'

/** Resolves when the server listens. After that, the caller must handle the server's errors. */
export async function startListening(server: Server, place: ListenOptions): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(place, resolve)
  await promise
  server.off('error', reject)
}

/**
 * The port on which a server listens, even if the system chose the port; 0 when the server has no
 * port.
 */
export function listeningPort(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Stops accepting connections, and resolves when the last connection has closed. */
export function closeServer(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  server.close(() => resolve())
  return promise
}
