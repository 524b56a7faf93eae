import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import { connect, type Socket } from 'node:net'

import { DialFailure } from '../circuits/circuit-ends.ts'
import { serviceLimits } from './limits.ts'
import type { TargetSockets } from '../sockets/target-sockets.ts'
import type { HostTerms } from './host-config.ts'
import { dialError } from '../../channel/messages/dial-error.ts'

/** Socket budget and the dialing identity that the next socket counts for. */
export interface CountedSockets {
  readonly sockets: TargetSockets
  readonly dialedBy: string
}

const END_OF_HEAD = '\r\n\r\n'

/**
 * @param signal aborts the attempt.
 * @param counted null for the router's own connections, such as health checks.
 * @throws {Error} when the connection fails.
 */
export async function connectStream(
  target: { readonly host: string; readonly port: number },
  signal: AbortSignal,
  counted: CountedSockets | null,
): Promise<Socket> {
  signal.throwIfAborted()
  const open = (): Socket => connect({ ...target, allowHalfOpen: true, noDelay: true })
  // @guard sockets-to-targets--tunnel
  const socket = counted === null ? open() : counted.sockets.open(counted.dialedBy, open)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const onAbort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', onAbort, { once: true })
  // Not removed, because a later error without a listener would end the process.
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
  { sockets, dialedBy }: CountedSockets,
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
 * Connects through an HTTP proxy (RFC 9110, CONNECT).
 * @returns bytes received after the proxy's response head.
 * @throws {DialFailure} when the proxy refuses.
 */
export async function connectThrough(
  socket: Socket,
  { host, port }: { readonly host: string; readonly port: number },
  signal: AbortSignal,
): Promise<Uint8Array> {
  const authority = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`)
  const { head, rest } = await headOf(socket, signal)
  const [, status = ''] = /^HTTP\/1\.[01] ([0-9]{3})(?: |$)/.exec(head.split('\r\n')[0] ?? '') ?? []
  if (!status.startsWith('2')) {
    socket.destroy()
    const shown = status === '' ? 'no HTTP' : status
    throw new DialFailure(dialError.refused, `the proxy answers ${shown} for ${authority}`)
  }
  return rest
}

function headOf(
  socket: Socket,
  signal: AbortSignal,
): Promise<{ readonly head: string; readonly rest: Uint8Array }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ head: string; rest: Uint8Array }>()
  const { proxyHeadBytesMax } = serviceLimits
  let read = Buffer.alloc(0)
  const fail = (error: Error): void => {
    socket.destroy()
    reject(error)
  }
  const onData = (chunk: Buffer): void => {
    read = Buffer.concat([read, chunk])
    const end = read.indexOf(END_OF_HEAD)
    if (end < 0 && read.length <= proxyHeadBytesMax) return
    if (end < 0) return fail(new Error('the answer of the proxy is too long'))
    socket.pause()
    const rest = Uint8Array.from(read.subarray(end + END_OF_HEAD.length))
    resolve({ head: read.toString('latin1', 0, end), rest })
  }
  const onEnd = (): void => fail(new Error('the proxy has closed the connection'))
  const onAbort = (): void => fail(signal.reason as Error)
  socket.on('data', onData)
  socket.on('end', onEnd)
  socket.on('close', onEnd)
  signal.addEventListener('abort', onAbort, { once: true })
  return promise.finally(() => {
    socket.off('data', onData)
    socket.off('end', onEnd)
    socket.off('close', onEnd)
    signal.removeEventListener('abort', onAbort)
  })
}

/** Whether the proxy resolves the name, because it may know names that this host does not. */
export function isNameOfProxy({ proxy }: HostTerms, isReachable: unknown): boolean {
  return proxy !== null && isReachable === null
}
