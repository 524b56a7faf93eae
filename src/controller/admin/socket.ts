import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import type { Server, Socket } from 'node:net'

import type { Api } from '../../api/server.ts'
import { actorFromCallerHeader, CALLER_HEADER, currentProcessCaller } from './caller.ts'
import { adminSocketAddress, type SocketAddress } from './socket-address.ts'

export const adminSocketLimits = {
  /** Maximum open connections; the server immediately closes further ones. */
  socketConnectionsMax: 32,
} as const

const OPENING_BRACE = 0x7b

/**
 * Serves the API at the admin socket. It creates its routes at the first request, because most
 * controllers receive no request here soon after their start.
 */
export class AdminSocket {
  readonly #server: Server
  readonly #address: SocketAddress
  /** All open connections, including upgraded ones that the HTTP server no longer tracks. */
  readonly #connections = new Set<Socket>()

  private constructor(server: Server, address: SocketAddress) {
    this.#server = server
    this.#address = address
    server.on('connection', (socket: Socket) => {
      this.#connections.add(socket)
      socket.once('close', () => this.#connections.delete(socket))
    })
  }

  /**
   * Opens the socket, after removing the socket file that a killed process left. The caller must
   * hold the lock of the data folder.
   * @param version version of this program, which clients compare with their own version.
   * @throws the error of `listen`.
   */
  static async open(api: Api, dataFolder: string, version: string): Promise<AdminSocket> {
    const own = currentProcessCaller()
    const { server } = api.listener({
      apis: ['client', 'management', 'fabric', 'host'],
      https: null,
      socketCaller: ({ headers }) => actorFromCallerHeader(headers[CALLER_HEADER], own),
      onClientError: (error, socket) => answerEarlierProgram(error, socket, version),
    })
    server.maxConnections = adminSocketLimits.socketConnectionsMax
    const address = adminSocketAddress(dataFolder)
    try {
      await listen(server, address.path)
    } catch (error) {
      address.release()
      throw error
    }
    return new AdminSocket(server, address)
  }

  /** Closes the socket and aborts requests in progress. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const socket of this.#connections) socket.destroy()
    await closed
    this.#address.release()
  }
}

async function listen(server: Server, path: string): Promise<void> {
  removeSocket(path)
  // A narrow umask prevents other users from connecting until the mode is set.
  const umask = process.umask(0o177)
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(path, resolve)
      process.umask(umask)
    })
    chmodSync(path, 0o600)
  } finally {
    process.umask(umask)
  }
}

function removeSocket(path: string): void {
  const status = lstatSync(path, { throwIfNoEntry: false })
  if (status?.isSocket() === true) unlinkSync(path)
}

/**
 * Responds to a program of an earlier release, which does not use HTTP here. Such a program sends
 * one line of JSON, and can read only one line of JSON.
 */
function answerEarlierProgram(
  error: Error & { readonly rawPacket?: unknown },
  socket: Socket,
  version: string,
): boolean {
  const { rawPacket } = error
  if (!Buffer.isBuffer(rawPacket) || rawPacket[0] !== OPENING_BRACE) return false
  const message = `this controller runs version ${version}; use its own flotilla`
  socket.end(`${JSON.stringify({ ok: false, code: 'OTHER_VERSION', message })}\n`)
  socket.destroySoon()
  return true
}
