import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { createServer, type Server, type Socket } from 'node:net'
import { connect } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import { MetricsSchema, PeerState, PeerStateChangesSchema } from '../../proto/gen/router_pb.ts'
import { Channel } from '../../src/channel/channel.ts'
import { channelLimits } from '../../src/channel/limits.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Link } from '../../src/router/links/link.ts'
import { linkHelloMessage } from '../../src/channel/messages/links.ts'
import { linkQueueLimits } from '../../src/router/links/link-options.ts'
import { PeerDialer } from '../../src/router/links/peer-dialer.ts'
import { Pipe, settle } from '../channel/pipe.ts'
import { freePort } from '../support/ports.ts'
import { configured } from './dial/support.ts'
import { askWithoutReading, PeerRouter } from './peer-router.ts'
import { eventually, type ScriptedController, TestNetwork } from './support.ts'

// Goal: each option of links, dialers and listeners has its documented effect. Method: a real
// router with the option; the test plays its controller and its peers.

let network: TestNetwork
let controller: ScriptedController
const closing: (() => unknown)[] = []
beforeEach(async () => {
  network = await TestNetwork.create()
  controller = await network.controller('a')
})
afterEach(async () => {
  await network.close()
  for (const close of closing.splice(0).toReversed()) await close()
})

async function start(more: string): Promise<void> {
  await network.running([controller.address], more)
  await eventually(() => controller.isConnected).toBe(true)
}

const dialing = (options: string, more = '') =>
  start(`link: {dialers: [{binding: transport, ${options}}]${more}}`)

/** The controller sends the router the IDs and listeners of the other routers. */
function tell(...peers: readonly { readonly id: string; readonly port: number }[]): void {
  const changes = peers.map(({ id, port }) => ({
    id,
    version: 'v2.0.0',
    state: PeerState.HEALTHY,
    listeners: [{ address: `tls:127.0.0.1:${port}`, protocol: 'tls', groups: [] }],
  }))
  const message = create(PeerStateChangesSchema, { changes })
  controller.send({ contentType: 1050, body: toBinary(PeerStateChangesSchema, message) })
}

async function peerRouter(): Promise<PeerRouter> {
  const peer = await PeerRouter.open(network, 'router2')
  closing.push(() => peer.close())
  return peer
}

/** Accepts connections, and sends nothing. */
async function silentServer(): Promise<{ readonly port: number; readonly sockets: Socket[] }> {
  const sockets: Socket[] = []
  const server: Server = createServer((socket) => {
    sockets.push(socket.on('error', () => undefined))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  closing.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()
  return { port: typeof address === 'object' && address !== null ? address.port : 0, sockets }
}

const reasonsOf = (message: string) => network.logged(message).map(({ fields }) => fields['reason'])

describe('The router that dials a link', () => {
  test.each(['connectTimeout: 50ms', 'connectTimeoutMs: 50'])(
    'stops waiting for a router that sends nothing, according to the option %s',
    async (option) => {
      await dialing(`options: {${option}}`)
      tell({ id: 'router2', port: (await silentServer()).port })
      await eventually(() => reasonsOf('no link to the router')).toEqual(['no answer within 50 ms'])
    },
  )

  test('dials from the local address in the option bind', async () => {
    await dialing('bind: 127.0.0.2')
    const peer = await peerRouter()
    tell(peer)
    await eventually(() => peer.sockets[0]?.remoteAddress).toBe('127.0.0.2')
  })

  test('closes a link to which a message cannot be sent within writeTimeout', async () => {
    await dialing('options: {writeTimeout: 200ms}')
    const peer = await peerRouter()
    tell(peer)
    await eventually(() => network.logged('link established')).toHaveLength(1)
    const [channel] = peer.channels
    if (channel !== undefined) closing.push(askWithoutReading(channel))
    await eventually(() => reasonsOf('link lost')).toContain('a message was not sent within 200 ms')
  })

  test('dials at most linkDialWorkerCount routers at a time and queues linkDialQueueLength more; for any further router it logs that too many dials wait', async () => {
    const forwarder = 'forwarder: {linkDialWorkerCount: 1, linkDialQueueLength: 1}'
    const policy = 'healthyDialBackoff: {minRetryInterval: 1h, maxRetryInterval: 2h}'
    await start(
      `${forwarder}\nlink: {dialers: [{binding: transport, options: {connectTimeout: 1m}, ${policy}}]}`,
    )
    const { port, sockets } = await silentServer()
    tell({ id: 'router2', port }, { id: 'router3', port }, { id: 'router4', port })
    await eventually(() => reasonsOf('no link to the router')).toEqual([
      'too many dials of links wait (forwarder.linkDialQueueLength)',
    ])
    await eventually(() => sockets).toHaveLength(1)
    sockets[0]?.destroy()
    await eventually(() => sockets).toHaveLength(2)
    expect(reasonsOf('no link to the router')).toHaveLength(2)
  })
})

describe('The delay before a router dials another router again', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** The waits between the dials of a router that is never reachable, in ms. */
  async function waits(isHealthy: boolean): Promise<number[]> {
    const policy = (min: number, max: number, factor: number): string =>
      `{minRetryInterval: ${min}ms, maxRetryInterval: ${max}ms, retryBackoffFactor: ${factor}}`
    const text = `healthyDialBackoff: ${policy(100, 1000, 3)}, unhealthyDialBackoff: ${policy(1000, 20_000, 10)}`
    const config = configured(`link: {dialers: [{binding: transport, ${text}}]}`).link?.dialers[0]
    if (config === undefined) throw new Error('no dialer')
    const dialedMs: number[] = []
    let nowMs = 0
    const peer = { id: 'router2', addresses: ['tls:127.0.0.1:1'], isHealthy, version: 'v2.0.0' }
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined }
    const dialer = new PeerDialer(
      {
        config,
        random: { next: () => 0.5 } as never,
        log,
        isLinked: () => false,
        inTurn: (_, task) => {
          void task()
          return true
        },
        dial: () => {
          dialedMs.push(nowMs)
          return Promise.reject(new Error('not there'))
        },
      },
      peer,
    )
    await vi.advanceTimersByTimeAsync(0)
    while (dialedMs.length < 5) {
      nowMs += 100
      await vi.advanceTimersByTimeAsync(100)
    }
    dialer.stop()
    return dialedMs.slice(1).map((at, k) => at - (dialedMs[k] ?? 0))
  }

  test('grows according to healthyDialBackoff while controllers are connected to the other router', async () => {
    expect(await waits(true)).toEqual([100, 300, 900, 1000])
  })

  test('grows according to unhealthyDialBackoff while no controller is connected to the other router', async () => {
    expect(await waits(false)).toEqual([1000, 10_000, 20_000, 20_000])
  })
})

describe('The router that listens for links', () => {
  async function listening(options: string): Promise<() => ReturnType<typeof connect>> {
    const port = await freePort()
    const address = `bind: "tls:127.0.0.1:${port}", advertise: "127.0.0.1:${port}"`
    await start(`link: {listeners: [{binding: transport, ${address}, options: {${options}}}]}`)
    const { certificatePem: cert, privateKeyPem: key } = await network.leaf('router2', [], [])
    return () => {
      const ca = network.root.certificatePem
      const socket = connect({
        host: '127.0.0.1',
        port,
        cert,
        key,
        ca,
        ALPNProtocols: ['ziti-link'],
      })
      closing.push(() => socket.destroy())
      return socket.on('error', () => undefined)
    }
  }

  test.each(['connectTimeout: 100ms', 'connectTimeoutMs: 100'])(
    'stops waiting for the hello according to the option %s',
    async (option) => {
      const dial = await listening(option)
      const socket = dial()
      await eventually(() => network.logged('link refused')).toHaveLength(1)
      expect(reasonsOf('link refused')).toEqual(['no hello in time'])
      await eventually(() => socket.closed).toBe(true)
    },
  )

  test('closes a link to which a message cannot be sent within writeTimeout', async () => {
    const dial = await listening('writeTimeout: 200ms')
    const socket = dial()
    const ids = { linkId: 'l1', routerId: 'router2', dialedId: 'router1' }
    const hello = linkHelloMessage({ ...ids, dialedVersion: 'v2.0.0', iteration: 1 })
    const channel: Channel = new Channel({
      socket,
      limits: channelLimits,
      clock: systemClock,
      hello,
      onHello: () => channel.open(null),
      onMessage: () => null,
      onClose: () => undefined,
    })
    await eventually(() => network.logged('link established')).toHaveLength(1)
    closing.push(askWithoutReading(channel))
    await eventually(() => reasonsOf('link lost')).toContain('a message was not sent within 200 ms')
  })
})

describe('A link', () => {
  test('sends heartbeats more often than each second if sendInterval and checkInterval are shorter', async () => {
    await dialing('', ', heartbeats: {sendInterval: 100ms, checkInterval: 10ms}')
    const peer = await peerRouter()
    tell(peer)
    const beats = () => peer.received.filter(({ message }) => message.contentType === 5)
    await eventually(() => beats().length).toBeGreaterThan(4)
    const gaps = beats().map(({ atMs }, k, all) => atMs - (all[k - 1]?.atMs ?? -Infinity))
    expect(Math.min(...gaps.slice(1)), 'not each second, as without the options').toBeLessThan(900)
  })

  test('is unresponsive if the other router is silent for unresponsiveLinkTimeout, and closes after closeUnresponsiveTimeout', async () => {
    await start(`forwarder: {unresponsiveLinkTimeout: 5s}
metrics: {reportInterval: 100ms, intervalAgeThreshold: 0s}
link: {dialers: [{binding: transport}], heartbeats: {sendInterval: 100ms, closeUnresponsiveTimeout: 6s}}`)
    const peer = await peerRouter()
    tell(peer)
    await eventually(() => network.logged('link established')).toHaveLength(1)
    peer.channels[0]?.pauseReading()
    const latencies = (): number[] =>
      controller
        .ofType(1007)
        .map(({ body }) => Object.entries(fromBinary(MetricsSchema, body).histograms))
        .flatMap((all) =>
          all.filter(([name]) => name.endsWith('.latency')).map(([, { mean }]) => mean),
        )
    await eventually(() => latencies().at(-1)).toBe(8_888_888_888_888)
    await eventually(() => reasonsOf('link lost')).toEqual(['no answer to heartbeats'])
  })

  test('queues payloads and acknowledgments up to payloadSenderQueueSize, ackSenderQueueSize and outQueueSize', async () => {
    const { link } = configured(
      'link: {dialers: [{binding: transport, options: {outQueueSize: 1}}], payloadSenderQueueSize: 2, ackSenderQueueSize: 3}',
    )
    const options = link?.dialers[0]?.options
    if (link === null || options === undefined) throw new Error('no dialer')
    const pipe = new Pipe()
    const channel: Channel = new Channel({
      socket: pipe,
      limits: channelLimits,
      clock: systemClock,
      onHello: () => channel.open(null),
      onMessage: () => null,
      onClose: () => undefined,
    })
    pipe.say({ contentType: 0, sequence: -1 })
    await settle()
    const addresses = { dialAddress: '', localAddress: '', remoteAddress: '' }
    const fields = { id: 'l1', peerId: 'router2', iteration: 1, isDialed: true, ...addresses }
    const made = new Link({ ...fields, channel, queues: linkQueueLimits(link, options) })
    /**
     * Number of pieces accepted one after the other, each in a separate turn, while nothing is
     * read.
     */
    const taken = async (contentType: number): Promise<number> => {
      for (let count = 0; ; count += 1) {
        if (!made.trySend({ contentType }, Infinity)) return count
        await settle()
      }
    }
    pipe.isRead = false
    expect(await taken(1100)).toBe(3)
    // These messages wait behind the payloads on one socket, but they have a separate limit.
    expect(await taken(1101)).toBe(7)
    pipe.readOn()
    await settle()
    expect(made.trySend({ contentType: 1100 }, Infinity), 'after everything was sent').toBe(true)
    channel.close('over')
  })
})
