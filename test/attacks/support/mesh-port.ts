import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterAll } from 'vitest'

import type { MeshIdentity } from '../../../src/cluster/mesh/mesh-service.ts'
import {
  type Authority,
  controllerIdentity,
  createAuthority,
  memberOf,
  startMesh,
  type TestMesh,
} from '../../cluster/mesh-fixture.ts'

export interface AttackedMesh {
  readonly authority: Authority
  readonly victim: TestMesh
  /** Identity of the victim's only peer, which does not run. */
  readonly member: MeshIdentity
  /** A TCP connection, from an address of this host. */
  tcp(localAddress: string): Socket
  /**
   * Opens a TLS connection. The handshake is complete for the client; the server may not have
   * checked its certificate yet.
   */
  tls(identity: MeshIdentity, localAddress?: string): Promise<TLSSocket>
}

/** The real port for peers of a member `a`, which has a peer `b`. */
export async function attackedMesh(): Promise<AttackedMesh> {
  const authority = await createAuthority()
  const [own, member] = await Promise.all(['a', 'b'].map((id) => controllerIdentity(authority, id)))
  if (own === undefined || member === undefined) throw new Error('there are two identities')
  const nowhere = '127.0.0.1:1'
  const victim = await startMesh('a', own, [
    memberOf('a', own, nowhere),
    memberOf('b', member, nowhere),
  ])
  const { port } = victim
  const sockets: Socket[] = []
  afterAll(() => {
    for (const socket of sockets) socket.destroy()
    victim.mesh.stop()
  })
  const keep = <S extends Socket>(socket: S): S => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    return socket
  }
  return {
    authority,
    victim,
    member,
    tcp: (localAddress) => keep(connectTcp({ host: '127.0.0.1', port, localAddress })),
    tls: async ({ certificatePem: cert, privateKeyPem: key, caPem: ca }, localAddress) => {
      const socket = keep(
        connectTls({
          host: '127.0.0.1',
          port,
          cert,
          key,
          ca,
          ALPNProtocols: ['h2'],
          ...(localAddress === undefined ? {} : { localAddress }),
          checkServerIdentity: () => undefined,
        }),
      )
      await once(socket, 'secureConnect')
      return socket
    },
  }
}

/** A frame of HTTP/2, RFC 9113 section 4.1. */
export function frame(type: number, payload: Uint8Array, flags = 0, stream = 0): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

export const SETTINGS = 4
export const PING = 6
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Resolves when the server has closed the connection. */
export async function isOver(socket: Socket): Promise<true> {
  socket.resume()
  if (!socket.destroyed) await new Promise((resolve) => socket.once('close', resolve))
  return true
}

/** Answers pings like a real peer; a connection that does not answer is soon closed. */
export function answerPings(socket: Socket): void {
  let unread = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    unread = Buffer.concat([unread, chunk])
    while (unread.length >= 9 && unread.length >= 9 + unread.readUIntBE(0, 3)) {
      const end = 9 + unread.readUIntBE(0, 3)
      const isPing = unread[3] === PING && unread[4] === 0
      if (isPing) socket.write(frame(PING, unread.subarray(9, end), ACK))
      unread = unread.subarray(end)
    }
  })
}

const ACK = 1
