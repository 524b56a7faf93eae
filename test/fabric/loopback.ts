import type { Server } from 'node:tls'

import { closeServer, startListening, listeningPort } from '../../src/lib/runtime/listening.ts'

/** Makes a router listener listen on a free port of the loopback. */
export async function onLoopback(
  server: Server,
): Promise<{ readonly port: number; readonly close: () => Promise<void> }[]> {
  await startListening(server, { host: '127.0.0.1', port: 0 })
  return [{ port: listeningPort(server), close: () => closeServer(server) }]
}
