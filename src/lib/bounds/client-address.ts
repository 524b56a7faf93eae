import type { Socket } from 'node:net'

import type { HostPort } from '../text/names.ts'

/** Addresses of clients whose connection a load balancer opened. */
const balanced = new WeakMap<Socket, HostPort>()

/** Address of the client: from the header of its load balancer, otherwise that of the TCP peer. */
export function clientAddress(socket: Socket): string {
  return balanced.get(socket)?.host ?? socket.remoteAddress ?? ''
}

export function clientPort(socket: Socket): number {
  return balanced.get(socket)?.port ?? socket.remotePort ?? 0
}

/** @param client as a trusted load balancer reported it. */
export function setClientAddress(socket: Socket, client: HostPort): void {
  balanced.set(socket, client)
}
