import { isIP, type LookupFunction, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls'

import type { Clock } from '../lib/clock.ts'
import { connectThroughProxy, type HttpProxy } from '../lib/runtime/http-proxy.ts'
import type { CachedResolver } from '../lib/runtime/cached-resolver.ts'
import { Channel, type ChannelDeps } from './channel.ts'
import type { ChannelMessage } from './frame.ts'
import { readFlag, readInt32 } from './headers.ts'
import type { ChannelLimits } from './limits.ts'
import { channelContentType, HELLO_SEQUENCE, channelHeaderKey } from './numbers.ts'

const REASON_CHARACTERS_MAX = 200

interface DialOptions extends Pick<ChannelDeps, 'onMessage' | 'onClose' | 'onFrame'> {
  readonly host: string
  readonly port: number
  /** Certificate, key and CA certificates, each as PEM. */
  readonly tls: Pick<ConnectionOptions, 'ca' | 'cert' | 'key'>
  readonly localAddress?: string
  /** The proxy through which the peer is dialed; null: no proxy. */
  readonly proxy?: HttpProxy | null
  /**
   * Resolves the host name, and uses cached addresses while no name server responds; absent: the
   * resolver of the operating system.
   */
  readonly names?: Pick<CachedResolver, 'lookupFor'>
  /** The application protocol (ALPN) that the listener must choose. */
  readonly protocol: string
  /**
   * Checks the peer after TLS has verified it and before the hello is sent; returns the reason to
   * reject the peer, or null.
   */
  readonly judge: (socket: TLSSocket) => string | Error | null
  readonly hello: ChannelMessage
  readonly limits: ChannelLimits
  readonly clock: Clock
  /** Maximum time from the start of the connection to the answer to the hello. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** The channel to which this socket is added. */
  readonly partOf?: Channel
}

/** An open channel, and the answer to its hello. */
export interface DialedChannel {
  readonly channel: Channel
  /** The peer's answer to the hello. */
  readonly answer: ChannelMessage
}

/**
 * Dials a channel: connects with TLS, verifies the host name, sends the hello and waits for the
 * answer. `onClose` is called only if the dial succeeds.
 * @throws {Error} whose message is a clause without capital letter and period, to be used within a
 * sentence.
 */
export async function dialChannel(options: DialOptions): Promise<DialedChannel> {
  const { proxy = null, clock } = options
  const beganMs = clock.monotonicMs()
  const through = proxy === null ? null : await connectThroughProxy(proxy, options, options)
  const spentMs = through === null ? 0 : clock.monotonicMs() - beganMs
  let dnsFault: string | null = null
  const lookup = options.names?.lookupFor((fault) => (dnsFault = fault))
  const socket = connectTo(options, lookup, through)
  return await settled(socket, { ...options, spentMs, dnsFault: () => dnsFault }, (done) => {
    socket.once('secureConnect', () => {
      const fault =
        socket.alpnProtocol === options.protocol
          ? options.judge(socket)
          : `it does not speak ${options.protocol}`
      if (fault === null) startHello(socket, options, done)
      else done.reject(fault instanceof Error ? fault : new Error(fault))
    })
  })
}

type HelloOptions = Omit<
  DialOptions,
  'host' | 'port' | 'tls' | 'localAddress' | 'protocol' | 'judge' | 'names'
>

/**
 * Opens a channel over a socket whose peer is already verified.
 * @throws {Error} whose message is a clause without capital letter and period, to be used within a
 * sentence.
 */
export async function openDialedChannel(
  socket: Duplex,
  options: HelloOptions,
): Promise<DialedChannel> {
  return await settled(socket, options, (done) => startHello(socket, options, done))
}

interface Settle {
  readonly resolve: (dialed: DialedChannel) => void
  readonly reject: (error: Error) => void
}

/**
 * Resolves or rejects as `begin` decides; also rejects on timeout, on abort, or when the socket
 * closes. `spentMs` is the part of the timeout that passed before the socket existed.
 */
async function settled(
  socket: Duplex,
  {
    signal,
    timeoutMs,
    spentMs = 0,
    dnsFault = () => null,
  }: Pick<DialOptions, 'signal' | 'timeoutMs'> & {
    readonly spentMs?: number
    /** Why the dialed address may be outdated; null if it is up to date. */
    readonly dnsFault?: () => string | null
  },
  begin: (done: Settle) => void,
): Promise<DialedChannel> {
  const { promise, resolve, reject } = Promise.withResolvers<DialedChannel>()
  const refuse = (error: Error): void => {
    socket.destroy()
    reject(error)
  }
  const fail = (error: Error): void => {
    const fault = dnsFault()
    const isNamed = fault === null || error.message === fault
    refuse(isNamed ? error : new Error(`${fault}: ${error.message}`, { cause: error }))
  }
  const timer = setTimeout(
    () => fail(new Error(`no answer within ${timeoutMs} ms`)),
    Math.max(1, timeoutMs - spentMs),
  )
  const onAbort = (): void => fail(new Error('given up'))
  signal.addEventListener('abort', onAbort, { once: true })
  socket.on('error', fail)
  socket.once('close', () => fail(new Error('closed by the peer')))
  begin({ resolve, reject: refuse })
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}

function connectTo(
  { host, port, tls, localAddress, protocol }: DialOptions,
  lookup: LookupFunction | undefined,
  through: Socket | null,
): TLSSocket {
  return connect({
    ...tls,
    host,
    port,
    ...(lookup === undefined ? {} : { lookup }),
    ...(through === null ? {} : { socket: through }),
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(localAddress === undefined ? {} : { localAddress }),
    ALPNProtocols: [protocol],
    minVersion: 'TLSv1.2',
    // @guard edge-router-of-a-tunnel--verified
    rejectUnauthorized: true,
  })
}

function startHello(socket: Duplex, options: HelloOptions, done: Settle): void {
  const { limits, clock, hello, onMessage, onFrame } = options
  let isOpen = false
  const channel: Channel = new Channel({
    socket,
    limits,
    clock,
    hello,
    ...(onFrame === undefined ? {} : { onFrame }),
    onHello: (answer) => {
      const refusal = refusalIn(answer)
      if (refusal !== null) {
        channel.close(refusal)
        return
      }
      isOpen = true
      done.resolve({ channel, answer })
      // Opened in a later turn of the event loop, so that the caller has the channel before its
      // first message arrives.
      setImmediate(() => channel.open(null, options.partOf ?? null))
    },
    onMessage,
    onClose: (reason) => {
      if (isOpen) options.onClose(reason)
      else done.reject(new Error(reason))
    },
  })
}

/** Why the peer's first message does not open the channel; null if it accepts the hello. */
function refusalIn({ contentType: type, headers, body }: ChannelMessage): string | null {
  if (type !== channelContentType.result) return 'its first message is no answer to the hello'
  if (readInt32(headers, channelHeaderKey.replyFor) !== HELLO_SEQUENCE) {
    return 'its first message answers something else than the hello'
  }
  if (readFlag(headers, channelHeaderKey.resultSuccess)) return null
  const text = Buffer.from(body)
    .toString('utf8')
    .replaceAll(/[^\x20-\x7e]+/g, ' ')
  return `it refused: ${text.slice(0, REASON_CHARACTERS_MAX) || 'without a reason'}`
}
