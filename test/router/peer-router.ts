import { createServer, type Server, type TLSSocket } from 'node:tls'

import { Channel } from '../../src/channel/channel.ts'
import type { ChannelMessage } from '../../src/channel/frame.ts'
import { helloAcceptedMessage, readHello } from '../../src/channel/hello.ts'
import { channelLimits } from '../../src/channel/limits.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { LINK_PROTOCOL } from '../../src/channel/messages/links.ts'
import type { TestNetwork } from './support.ts'

/**
 * Another router, which the router under test dials, with a real certificate and real channels; the
 * test gives its answers.
 */
export class PeerRouter {
  readonly id: string
  readonly channels: Channel[] = []
  readonly sockets: TLSSocket[] = []
  /** Hello messages, with the time of each. */
  readonly hellos: { readonly headers: ChannelMessage['headers']; readonly atMs: number }[] = []
  /** If true, the links of this router have several sockets. */
  groups = false
  /** All received messages, with the time of each. */
  readonly received: { readonly message: ChannelMessage; readonly atMs: number }[] = []
  readonly #server: Server

  private constructor(id: string, server: Server) {
    this.id = id
    this.#server = server
    server.on('tlsClientError', () => undefined)
    server.on('secureConnection', (socket) => this.#accept(socket))
  }

  static async open(network: TestNetwork, id: string): Promise<PeerRouter> {
    const { certificatePem: cert, privateKeyPem: key } = await network.leaf(id, [], ['127.0.0.1'])
    const server = createServer({
      cert,
      key,
      ca: network.root.certificatePem,
      requestCert: true,
      ALPNProtocols: [LINK_PROTOCOL],
    })
    const peer = new PeerRouter(id, server)
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    return peer
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  async close(): Promise<void> {
    for (const channel of this.channels) channel.close('over')
    await new Promise<void>((done) => this.#server.close(() => done()))
  }

  #accept(socket: TLSSocket): void {
    const channel: Channel = new Channel({
      socket,
      limits: channelLimits,
      clock: systemClock,
      onFrame: (direction, message) => {
        if (direction === 'in') this.received.push({ message, atMs: systemClock.monotonicMs() })
      },
      onHello: (message) => {
        const { headers } = message
        this.hellos.push({ headers, atMs: systemClock.monotonicMs() })
        const group = this.groups ? (readHello(message)?.group ?? null) : null
        const hello = { token: '', version: null, type: '', group, headers }
        channel.open(helloAcceptedMessage(hello, this.id, new Map()))
      },
      onMessage: () => null,
      onClose: () => undefined,
    })
    this.channels.push(channel)
    this.sockets.push(socket)
  }
}

/** Stops reading, and sends requests without end. @returns the reason why the channel stops. */
export function askWithoutReading(channel: Channel): () => void {
  channel.pauseReading()
  const headers = new Map([[128, new Uint8Array(60_000)]])
  const timer = setInterval(() => {
    channel.trySend({ contentType: 3, headers }, channelLimits.trySendBytesMax)
  }, 2)
  return () => clearInterval(timer)
}
