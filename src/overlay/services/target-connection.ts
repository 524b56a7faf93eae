import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import { connect, type Socket } from 'node:net'

import { ProxyRefusal, requestProxyTunnel } from '../../lib/runtime/http-proxy.ts'
import type { HostPort } from '../../lib/text/names.ts'
import { DialFailure } from '../circuits/circuit-endpoint.ts'
import type { TargetSocketLimiter } from '../sockets/target-socket-limiter.ts'
import type { HostConfig } from './host-config.ts'
import { dialErrorCodes } from '../../channel/messages/dial-error.ts'

/**
 * The limiter of sockets to targets, and the dialing identity for which it counts the next socket.
 */
export interface TargetSocketQuota {
  readonly sockets: TargetSocketLimiter
  readonly dialedBy: string
}

/**
 * @param signal aborts the attempt.
 * @param counted null for connections of this program itself, such as health checks.
 * @throws {Error} when the connection fails.
 */
export async function connectStream(
  target: { readonly host: string; readonly port: number },
  signal: AbortSignal,
  counted: TargetSocketQuota | null,
): Promise<Socket> {
  signal.throwIfAborted()
  const open = (): Socket => connect({ ...target, allowHalfOpen: true, noDelay: true })
  // @guard sockets-to-targets--tunnel
  const socket = counted === null ? open() : counted.sockets.open(counted.dialedBy, open)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const onAbort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', onAbort, { once: true })
  // This listener is never removed, because a later error without a listener would end the process.
  socket.on('error', reject)
  socket.once('connect', () => resolve())
  try {
    await promise
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** A connected UDP socket, which receives only from its peer. @throws {Error} */
export async function connectDatagrams(
  { host, port }: { readonly host: string; readonly port: number },
  signal: AbortSignal,
  { sockets, dialedBy }: TargetSocketQuota,
): Promise<DatagramSocket> {
  signal.throwIfAborted()
  const type = host.includes(':') ? 'udp6' : 'udp4'
  const socket = sockets.open(dialedBy, () => createSocket(type))
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.once('error', reject)
  socket.connect(port, host, () => resolve())
  try {
    await promise
    socket.off('error', reject)
    return socket
  } catch (error) {
    socket.close()
    throw error
  }
}

/**
 * Connects through an HTTP proxy.
 * @returns bytes received after the proxy's response head.
 * @throws {DialFailure} when the proxy refuses, or another error when no complete response arrives.
 */
export async function openProxyTunnel(
  socket: Socket,
  server: HostPort,
  signal: AbortSignal,
): Promise<Uint8Array> {
  try {
    return await requestProxyTunnel(socket, server, { signal, credentials: null })
  } catch (error) {
    if (!(error instanceof ProxyRefusal)) throw error
    throw new DialFailure(dialErrorCodes.refused, error.message)
  }
}

/** Whether the proxy should resolve the name: it may know names that this host does not know. */
export function isResolvedByProxy({ proxy }: HostConfig, isReachable: unknown): boolean {
  return proxy !== null && isReachable === null
}
