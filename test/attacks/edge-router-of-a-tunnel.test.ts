import { createServer, type Server } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { Channel } from '../../src/channel/channel.ts'
import type { ChannelMessage } from '../../src/channel/frame.ts'
import {
  encodeFlag,
  encodeInt32,
  readInt32,
  readText,
  encodeText,
} from '../../src/channel/headers.ts'
import { type Hello, helloAcceptedMessage, readHello } from '../../src/channel/hello.ts'
import { channelLimits } from '../../src/channel/limits.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { seededRandom } from '../../src/lib/random.ts'
import type { CertificateWithKey } from '../../src/pki/authority/authority.ts'
import { payloadMessage } from '../../src/channel/messages/payload.ts'
import type { EdgeChannel } from '../../src/tunnel/edge-channel.ts'
import { TunnelCounts } from '../../src/tunnel/tunnel-counts.ts'
import { EdgeCircuits } from '../../src/tunnel/edge-circuits.ts'
import { EdgeRouterConnector } from '../../src/tunnel/edge-router-connector.ts'
import { eventually, TestNetwork, version } from '../router/support.ts'
import { Peer } from '../router/forward/peer.ts'

// The attack: a stolen edge router, or an impostor in its place, gets access to a tunnel's circuits
// at another router, to a service that the tunnel hosts elsewhere, or to the session of the tunnel.

/** A holder of an edge router's key; a test determines its responses. */
class StolenEdgeRouter {
  readonly hellos: Hello[] = []
  readonly received: ChannelMessage[] = []
  channel: Channel | null = null
  /** Circuit ID in the response to a connect request. */
  circuitId = ''
  readonly #server: Server

  constructor({ certificatePem, privateKeyPem }: CertificateWithKey) {
    this.#server = createServer({
      cert: certificatePem,
      key: privateKeyPem,
      requestCert: true,
      rejectUnauthorized: false,
      ALPNProtocols: ['ziti-edge'],
    })
    this.#server.on('tlsClientError', () => undefined)
    this.#server.on('secureConnection', (socket) => {
      const channel: Channel = new Channel({
        socket,
        limits: channelLimits,
        clock: systemClock,
        onHello: (message) => {
          const hello = readHello(message)
          if (hello === null) throw new Error('no hello')
          this.hellos.push(hello)
          this.channel = channel
          channel.open(helloAcceptedMessage(hello, 'router', new Map()))
        },
        onMessage: (message) => {
          this.#onMessage(message)
          return null
        },
        onClose: () => undefined,
      })
    })
  }

  async listen(): Promise<number> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done))
    return (this.#server.address() as { port: number }).port
  }

  /** Sends a message about a connection of the tunnel. */
  send(contentType: number, connectionId: number, body: Uint8Array = new Uint8Array()): void {
    this.channel?.send({ contentType, headers: new Map([[1000, encodeInt32(connectionId)]]), body })
  }

  /** Sends the first payload of the endpoint at the host. */
  sendInto(circuitId: string, word: string, sequence: number): void {
    const body = encodeText(word)
    const piece = { body, edgeFlags: 0, traceId: null, sequence, flags: 2, capabilities: null }
    this.channel?.send(payloadMessage(encodeText(circuitId), piece, 1))
  }

  close(): void {
    this.channel?.close('the router stops')
    this.#server.close()
  }

  #onMessage(message: ChannelMessage): void {
    this.received.push(message)
    const { contentType, headers } = message
    if (contentType !== 60_783 && contentType !== 60_790) return
    const answer = new Map([
      [1000, encodeInt32(readInt32(headers, 1000) ?? 0)],
      [1026, encodeText(this.circuitId)],
      [1028, encodeFlag(true)],
    ])
    this.channel?.reply(message, { contentType: 60_784, headers: answer })
  }
}

let network: TestNetwork
let circuits: EdgeCircuits
let routers: EdgeRouterConnector
const stolen: StolenEdgeRouter[] = []
beforeEach(async () => {
  network = await TestNetwork.create()
  circuits = new EdgeCircuits(systemClock)
  const key = await network.leaf('laptop', [], [])
  routers = new EdgeRouterConnector({
    certificate: { credential: { ...key, caPem: network.root.certificatePem } },
    version,
    circuits,
    counts: new TunnelCounts(),
    clock: systemClock,
    random: seededRandom(1),
    log: { info: () => undefined, warn: () => undefined, error: () => undefined },
    token: () => 'the token of the session',
    onOpen: () => undefined,
    onLost: () => undefined,
  })
})
afterEach(async () => {
  circuits.stop()
  routers.stop()
  for (const router of stolen.splice(0)) router.close()
  await network.close()
})

async function listening(
  key: CertificateWithKey,
): Promise<{ router: StolenEdgeRouter; port: number }> {
  const router = new StolenEdgeRouter(key)
  stolen.push(router)
  return { router, port: await router.listen() }
}

/** The tunnel is connected to two edge routers. */
async function connected() {
  const [one, other] = [
    await listening(await network.leaf('one', [], ['127.0.0.1'])),
    await listening(await network.leaf('other', [], ['127.0.0.1'])),
  ]
  const at = (name: string, port: number) => ({ name, addresses: [{ host: '127.0.0.1', port }] })
  routers.follow([at('one', one.port), at('other', other.port)])
  await eventually(() => routers.open.length).toBe(2)
  const channelOf = (name: string): EdgeChannel => {
    const found = routers.open.find(({ routerName }) => routerName === name)
    if (found === undefined) throw new Error(`${name} is not connected`)
    return found
  }
  return {
    one: one.router,
    other: other.router,
    toOne: channelOf('one'),
    toOther: channelOf('other'),
  }
}

const noCircuitData = { instanceId: '', peerData: new Map<number, Uint8Array>() }

/** A circuit of the tunnel through one edge router. */
async function opened(router: StolenEdgeRouter, edge: EdgeChannel, id: string): Promise<Peer> {
  router.circuitId = id
  const made = await edge.connect({ token: 'service session', sharer: 's' }, noCircuitData, 10_000)
  const peer = new Peer()
  const { address } = made
  peer.end = circuits.open({ id, address, owner: { id: '' }, isTerminator: false }, peer)
  return peer
}

test('an edge router can neither send data into nor end a circuit that uses another edge router', async () => {
  const { one, other, toOne, toOther } = await connected()
  const peer = await opened(one, toOne, 'c1')
  const own = await opened(other, toOther, 'c2')
  other.sendInto('c1', 'false', 0)
  other.send(1103, 1, encodeText('c1'))
  other.sendInto('c2', 'own', 0)
  await eventually(() => own.bytes).toBe(3)
  one.sendInto('c1', 'true', 0)
  await eventually(() => peer.bytes).toBe(4)
  expect(peer.closed).toBeNull()
})

test('an edge router cannot take over a circuit by using its ID', async () => {
  const { one, other, toOne, toOther } = await connected()
  const peer = await opened(one, toOne, 'c1')
  other.circuitId = 'c1'
  await expect(
    toOther.connect({ token: 'service session', sharer: 's' }, noCircuitData, 10_000),
  ).rejects.toThrow()
  one.sendInto('c1', 'true', 0)
  await eventually(() => peer.bytes).toBe(4)
})

test('an edge router can dial a hosted service only with the service session under which the service is hosted at this router', async () => {
  const { one, toOne } = await connected()
  const dialed: string[] = []
  const events = {
    onDial: ({ id }: { id: string }) => {
      dialed.push(id)
      return Promise.resolve(new Map<number, Uint8Array>())
    },
    onEstablished: () => undefined,
    onClosed: () => undefined,
  }
  const id = await toOne.bind('the right session', [], events)
  const dial = async (circuitId: string, token: string): Promise<number | undefined> => {
    const headers = new Map([
      [1000, encodeInt32(id)],
      [1012, encodeInt32(0x80_00_00_00 + circuitId.length)],
      [1026, encodeText(circuitId)],
      [1028, encodeFlag(true)],
    ])
    const answer = await one.channel?.request({
      contentType: 60_787,
      headers,
      body: encodeText(token),
    })
    return answer?.contentType
  }
  expect(await dial('c1', 'a session of elsewhere')).toBe(60_789)
  expect(await dial('c12', 'the right session')).toBe(60_788)
  expect(dialed).toEqual(['c12'])
})

test('a server without a certificate of the network, or with one for another host, receives no session token', async () => {
  const foreign = await TestNetwork.create()
  const { router: impostor, port } = await listening(await foreign.leaf('one', [], ['127.0.0.1']))
  const elsewhere = await listening(await network.leaf('one', [], ['other.test']))
  const honest = await listening(await network.leaf('one', [], ['127.0.0.1']))
  routers.follow(
    [port, elsewhere.port, honest.port].map((each) => ({
      name: `at ${each}`,
      addresses: [{ host: '127.0.0.1', port: each }],
    })),
  )
  await eventually(() => honest.router.hellos.length).toBe(1)
  const [hello] = honest.router.hellos
  expect(readText(hello?.headers ?? new Map(), 1002)).toBe('the token of the session')
  expect([impostor.hellos, elsewhere.router.hellos]).toEqual([[], []])
  await foreign.close()
})
