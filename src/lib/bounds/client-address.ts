import type { Socket } from 'node:net'

import type { HostPort } from '../text/names.ts'

/** Client addresses of connections that a load balancer opened. */
const balanced = new WeakMap<Socket, HostPort>()

/**
 * Address of the client: the address in the load balancer's header if there is one, otherwise the
 * address of the TCP peer.
 */
export function clientAddress(socket: Socket): string {
  return balanced.get(socket)?.host ?? socket.remoteAddress ?? ''
}

export function clientPort(socket: Socket): number {
  return balanced.get(socket)?.port ?? socket.remotePort ?? 0
}

/**
 * Stores the client address of a connection.
 * @param client the address that a trusted load balancer reported.
 */
export function setClientAddress(socket: Socket, client: HostPort): void {
  balanced.set(socket, client)
}
