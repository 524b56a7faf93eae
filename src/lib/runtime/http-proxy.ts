import { once } from 'node:events'
import { BlockList, connect, isIP, type Socket } from 'node:net'

import { errorMessage } from '../error-code.ts'
import { formatHostPort, type HostPort, parseHostPort } from '../text/names.ts'

/** An HTTP proxy that opens connections with the method CONNECT (RFC 9110, 9.3.6). */
export interface HttpProxy extends HostPort {
  /** User name and password for the proxy; null for a proxy without authentication. */
  readonly credentials: { readonly username: string; readonly password: string } | null
}

/** The proxy responded without opening a connection. */
export class ProxyRefusal extends Error {
  override readonly name = 'ProxyRefusal'
}

/** Maximum bytes in the head of a proxy's response. */
const HEAD_BYTES_MAX = 16 * 1024
const HEAD_END = '\r\n\r\n'

/**
 * Connects to a server through a proxy. The proxy resolves the server's name.
 * @throws {Error} whose message is one clause, without the credentials.
 */
export async function connectThroughProxy(
  proxy: HttpProxy,
  server: HostPort,
  options: {
    readonly timeoutMs: number
    readonly localAddress?: string
    readonly signal?: AbortSignal
  },
): Promise<Socket> {
  const { timeoutMs, localAddress, signal } = options
  const { host, port, credentials } = proxy
  const deadline = AbortSignal.timeout(timeoutMs)
  const signals = signal === undefined ? [deadline] : [deadline, signal]
  const ended = AbortSignal.any(signals)
  const bound = localAddress === undefined ? {} : { localAddress }
  const socket = connect({ host, port, ...bound })
  // This listener remains after the connection is set up: without a listener, a later error would
  // end the process.
  socket.on('error', () => undefined)
  try {
    await once(socket, 'connect', { signal: ended })
    const rest = await requestProxyTunnel(socket, server, { credentials, signal: ended })
    if (rest.length > 0) socket.unshift(rest)
    return socket
  } catch (error) {
    socket.destroy()
    const reason = deadline.aborted ? `no answer within ${timeoutMs} ms` : errorMessage(error)
    throw new Error(`proxy ${formatHostPort(proxy)}: ${reason}`, { cause: error })
  }
}

/**
 * Asks the proxy to which a socket is connected to open a connection to a server. The socket is
 * paused afterwards.
 * @returns bytes received after the head of the response.
 * @throws {ProxyRefusal}, or another error when the connection ends, the signal aborts, or the
 * response is too long.
 */
export async function requestProxyTunnel(
  socket: Socket,
  server: HostPort,
  options: Pick<HttpProxy, 'credentials'> & { readonly signal: AbortSignal },
): Promise<Uint8Array> {
  socket.write(connectRequest(options, server))
  const { head, rest } = await headOf(socket, options.signal)
  const [, status = ''] = /^HTTP\/1\.[01] ([0-9]{3})(?: |$)/.exec(head.split('\r\n')[0] ?? '') ?? []
  if (status.startsWith('2')) return rest
  socket.destroy()
  const shown = status === '' ? 'no HTTP' : status
  throw new ProxyRefusal(`the proxy answers ${shown} for ${formatHostPort(server)}`)
}

function headOf(
  socket: Socket,
  signal: AbortSignal,
): Promise<{ readonly head: string; readonly rest: Uint8Array }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ head: string; rest: Uint8Array }>()
  let read = Buffer.alloc(0)
  const fail = (error: Error): void => {
    socket.destroy()
    reject(error)
  }
  const onData = (chunk: Buffer): void => {
    read = Buffer.concat([read, chunk])
    const end = read.indexOf(HEAD_END)
    if (end < 0 && read.length <= HEAD_BYTES_MAX) return
    if (end < 0) return fail(new Error('the answer of the proxy is too long'))
    socket.pause()
    const rest = Uint8Array.from(read.subarray(end + HEAD_END.length))
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

function connectRequest({ credentials }: Pick<HttpProxy, 'credentials'>, server: HostPort): string {
  const to = formatHostPort(server)
  const lines = [`CONNECT ${to} HTTP/1.1`, `Host: ${to}`]
  if (credentials !== null) {
    const { username, password } = credentials
    const token = Buffer.from(`${username}:${password}`, 'utf8').toString('base64')
    lines.push(`Proxy-Authorization: Basic ${token}`)
  }
  return lines.join('\r\n') + HEAD_END
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The proxy in HTTPS_PROXY, unless NO_PROXY excludes the server. Both variables have the syntax
 * that other programs use. Null if no proxy applies. No proxy ever applies to this host itself.
 * @throws {Error} when HTTPS_PROXY is not the address of an HTTP proxy.
 */
export function proxyFromEnvironment(environment: Environment, server: HostPort): HttpProxy | null {
  const text = environment['HTTPS_PROXY'] ?? environment['https_proxy'] ?? ''
  if (text === '' || isThisHost(server.host)) return null
  const excluded = (environment['NO_PROXY'] ?? environment['no_proxy'] ?? '').split(',')
  if (excluded.some((entry) => excludes(entry.trim().toLowerCase(), server))) return null
  const url = URL.parse(text.includes('://') ? text : `http://${text}`)
  if (url?.protocol !== 'http:' || url.hostname === '') {
    throw new Error('HTTPS_PROXY: expected http://<host>:<port>')
  }
  const { username, password } = url
  return {
    host: url.hostname.replaceAll(/[[\]]/g, ''),
    port: url.port === '' ? 80 : Number(url.port),
    credentials:
      username === ''
        ? null
        : { username: decodeURIComponent(username), password: decodeURIComponent(password) },
  }
}

function isThisHost(host: string): boolean {
  const isLoopback = isIP(host) === 4 ? host.startsWith('127.') : host === '::1'
  return isLoopback || host.toLowerCase() === 'localhost'
}

/**
 * Whether an entry of NO_PROXY excludes a server.
 * @param entry `*`, an address, a network, or a name, which also excludes all names below it.
 */
function excludes(entry: string, server: HostPort): boolean {
  if (entry === '' || entry === '*') return entry === '*'
  const host = server.host.toLowerCase()
  const place = isIP(entry) === 0 ? parseHostPort(entry) : null
  if (place !== null && place.port !== server.port) return false
  const name = place?.host ?? entry
  if (isIP(host) === 0)
    return host === name || host.endsWith(name.startsWith('.') ? name : `.${name}`)
  return host === name || isInNetwork(host, name)
}

function isInNetwork(host: string, network: string): boolean {
  const [address = '', bits = ''] = network.split('/')
  const family = isIP(address)
  const isPrefix = /^[0-9]{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
  if (family === 0 || !isPrefix) return false
  const list = new BlockList()
  list.addSubnet(address, Number(bits), family === 4 ? 'ipv4' : 'ipv6')
  return list.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6')
}
