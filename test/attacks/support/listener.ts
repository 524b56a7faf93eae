import { once } from 'node:events'
import type { AddressInfo, Server, Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterAll, expect } from 'vitest'

import type { ApiLimits } from '../../../src/api/limits.ts'
import { createApi } from '../../../src/api/server.ts'
import { controllerForFile, type ForFile } from '../../api/support/for-file.ts'
import { memberLeaf } from '../../support/member-leaf.ts'
import { PATIENCE_MS } from '../../support/patience.ts'

export interface AttackedListener extends ForFile {
  readonly port: number
  readonly server: Server
  /** The sockets that the listener has accepted, including closed ones. */
  readonly accepted: readonly Socket[]
  /** Number of connections that are open, as the server counts them. */
  connections(): Promise<number>
  /** A connection whose handshake is complete. */
  connect(): Promise<TLSSocket>
  /** Status line, headers and body of `GET /edge/client/v1/version` on a new connection. */
  version(): Promise<string>
}

/** A real HTTPS listener on loopback in front of a controller in this process. */
export async function attackedListener(limits: Partial<ApiLimits>): Promise<AttackedListener> {
  return await listenerBefore(await controllerForFile(limits))
}

/** A real HTTPS listener on loopback in front of an existing controller. */
export async function listenerBefore(forFile: ForFile): Promise<AttackedListener> {
  const { certificatePem: cert, privateKeyPem: key } = await memberLeaf('ctrl1')
  const servers: Server[] = []
  const app = createApi(forFile.controller.parts).listener({
    apis: ['client', 'management', 'fabric', 'host'],
    https: { cert, key },
    onHttpsServer: (made) => servers.push(made),
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const [server] = servers
  if (server === undefined) throw new Error('the listener has a server')
  const accepted: Socket[] = []
  server.on('secureConnection', (socket: Socket) => accepted.push(socket))
  const clients: TLSSocket[] = []
  afterAll(async () => {
    for (const client of clients) client.destroy()
    await app.close()
  })
  const { port } = server.address() as AddressInfo
  const connect = async (): Promise<TLSSocket> => {
    const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false })
    clients.push(socket)
    socket.on('error', () => undefined)
    await once(socket, 'secureConnect')
    return socket
  }
  const connections = (): Promise<number> =>
    new Promise((resolve, reject) => {
      server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)))
    })
  return {
    ...forFile,
    port,
    server,
    accepted,
    connections,
    connect,
    version: async () => {
      const socket = await connect()
      socket.write('GET /edge/client/v1/version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
      return await textOf(socket)
    },
  }
}

/** All data that arrives until the connection ends. */
export async function textOf(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  await new Promise((resolve) => socket.once('close', resolve))
  return text
}

/** Waits until a condition holds. @throws if it does not hold within `withinMs`. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  withinMs = PATIENCE_MS,
): Promise<void> {
  await expect.poll(holds, { timeout: withinMs, interval: 20 }).toBe(true)
}
