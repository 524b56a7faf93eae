import { BlockList, connect, isIP, type Socket } from 'node:net'

import { formatHostPort, type HostPort, parseHostPort } from '../text/names.ts'

/** An HTTP proxy that opens connections with the method CONNECT (RFC 9110, 9.3.6). */
export interface HttpProxy extends HostPort {
  /** Null for a proxy without authentication. */
  readonly credentials: { readonly username: string; readonly password: string } | null
}

/** Maximum bytes of the proxy's answer. */
const ANSWER_BYTES_MAX = 8 * 1024
const HEAD_END = '\r\n\r\n'

/**
 * Connects to a server through a proxy. The proxy resolves the server's name.
 * @throws {Error} one clause, without the credentials.
 */
export async function connectThrough(
  proxy: HttpProxy,
  server: HostPort,
  options: {
    readonly timeoutMs: number
    readonly localAddress?: string
    readonly signal?: AbortSignal
  },
): Promise<Socket> {
  const { timeoutMs, localAddress, signal } = options
  const place = formatHostPort(proxy)
  const socket = connect({
    host: proxy.host,
    port: proxy.port,
    ...(localAddress === undefined ? {} : { localAddress }),
    ...(signal === undefined ? {} : { signal }),
  })
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const fail = (reason: string): void => {
    reject(new Error(`proxy ${place}: ${reason}`))
    socket.destroy()
  }
  const timer = setTimeout(() => fail(`no answer within ${timeoutMs} ms`), timeoutMs)
  const onError = (error: Error): void => fail(error.message)
  const onClose = (): void => fail('closed the connection')
  let head = ''
  const onReadable = (): void => {
    const chunk = socket.read() as Buffer | null
    if (chunk === null) return
    head += chunk.toString('latin1')
    const end = head.indexOf(HEAD_END)
    if (end < 0) {
      if (head.length > ANSWER_BYTES_MAX) fail('sent an answer that is too long')
      return
    }
    const [status = ''] = head.split('\r\n')
    const isAccepted = /^HTTP\/1\.[01] 2[0-9]{2}(?: |$)/.test(status)
    if (!isAccepted) {
      fail(`answered ${status.replaceAll(/[^\x20-\x7e]/g, ' ').slice(0, 100)}`)
      return
    }
    socket.off('readable', onReadable)
    const rest = head.slice(end + HEAD_END.length)
    if (rest !== '') socket.unshift(Buffer.from(rest, 'latin1'))
    resolve(socket)
  }
  socket.on('error', onError)
  socket.on('close', onClose)
  socket.on('readable', onReadable)
  socket.once('connect', () => socket.write(connectRequest(proxy, server)))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    socket.off('close', onClose)
  }
}

function connectRequest({ credentials }: HttpProxy, server: HostPort): string {
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
 * The proxy of HTTPS_PROXY for a server that NO_PROXY does not exclude, as other programs read
 * them; null for none. This host is never reached through a proxy.
 * @throws {Error} when HTTPS_PROXY is no `http://host:port`.
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

/** @param entry of NO_PROXY: `*`, an address, a network, or a name and all names below it. */
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
