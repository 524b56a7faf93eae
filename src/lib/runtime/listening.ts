import type { ListenOptions, Server } from 'node:net'

/** Resolves when the server listens. After that, the caller handles its errors. */
export async function listenAt(server: Server, place: ListenOptions): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(place, resolve)
  await promise
  server.off('error', reject)
}

/** The port that a server listens on, even if the system chose it; 0 when it has none. */
export function listeningPort(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Stops accepting connections, and resolves when the last one has closed. */
export function closeServer(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  server.close(() => resolve())
  return promise
}
