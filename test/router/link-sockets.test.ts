import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  InspectAnswerSchema,
  InspectRequestSchema,
  PeerState,
  PeerStateChangesSchema,
} from '../../proto/gen/router_pb.ts'
import { Channel } from '../../src/channel/channel.ts'
import { readText, encodeText } from '../../src/channel/headers.ts'
import { channelLimits } from '../../src/channel/limits.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Link } from '../../src/router/links/link.ts'
import { Pipe, settle } from '../channel/pipe.ts'
import { freePort } from '../support/ports.ts'
import { PeerRouter } from './peer-router.ts'
import { eventually, type ScriptedController, TestNetwork } from './support.ts'

// Goal: a link has the number of sockets that its dialer requests, and carries each circuit over
// one of them.

const networks: TestNetwork[] = []
const closing: (() => Promise<void>)[] = []
let network: TestNetwork
let controller: ScriptedController
beforeEach(async () => {
  network = await TestNetwork.create()
  networks.push(network)
  controller = await network.controller('a')
})
afterEach(async () => {
  for (const each of networks.splice(0)) await each.close()
  for (const close of closing.splice(0)) await close()
})

async function dialing(options: string): Promise<void> {
  await network.running([controller.address], `link: {dialers: [{binding: transport, ${options}}]}`)
  await eventually(() => controller.isConnected).toBe(true)
}

function tell({ id, port }: { readonly id: string; readonly port: number }): void {
  const listeners = [{ address: `tls:127.0.0.1:${port}`, protocol: 'tls', groups: [] }]
  const changes = [{ id, version: 'v2.0.0', state: PeerState.HEALTHY, listeners }]
  const message = create(PeerStateChangesSchema, { changes })
  controller.send({ contentType: 1050, body: toBinary(PeerStateChangesSchema, message) })
}

async function peerRouter(): Promise<PeerRouter> {
  const peer = await PeerRouter.open(network, 'router2')
  peer.groups = true
  closing.push(() => peer.close())
  return peer
}

/** Number of sockets of each link, as the router reports it to its controller. */
async function socketsAt({ channel }: ScriptedController): Promise<number[]> {
  const requestedValues = ['links']
  const body = toBinary(InspectRequestSchema, create(InspectRequestSchema, { requestedValues }))
  const reply = await channel?.request({ contentType: 1013, body })
  const { values } = fromBinary(InspectAnswerSchema, reply?.body ?? new Uint8Array())
  const shown = JSON.parse(values[0]?.value ?? '{}') as { links: { sockets: number }[] }
  return shown.links.map(({ sockets }) => sockets)
}

const typesAt = ({ hellos }: PeerRouter): string[] =>
  hellos.map(({ headers }) => readText(headers, 7) ?? '').toSorted()

describe('A link with several sockets', () => {
  test('has maxDefaultConnections and maxAckConnections sockets at both of its routers', async () => {
    const other = await TestNetwork.create(network, 'router2')
    networks.push(other)
    const farController = await other.controller('b')
    const port = await freePort()
    const place = `bind: "tls:127.0.0.1:${port}", advertise: "127.0.0.1:${port}"`
    await other.running(
      [farController.address],
      `link: {listeners: [{binding: transport, ${place}}]}`,
    )
    await eventually(() => farController.isConnected).toBe(true)
    await dialing('startupDelay: 0s, maxDefaultConnections: 2, maxAckConnections: 2')
    tell({ id: 'router2', port })
    await eventually(() => socketsAt(controller)).toEqual([4])
    await eventually(() => socketsAt(farController)).toEqual([4])
    await network.closeRouters()
    await eventually(() => socketsAt(farController)).toEqual([])
  })

  test('dials its additional sockets after startupDelay, and again if one is lost', async () => {
    await dialing('startupDelay: 300ms, maxDefaultConnections: 1, maxAckConnections: 1')
    const peer = await peerRouter()
    tell(peer)
    await eventually(() => typesAt(peer)).toEqual(['link.ack', 'link.default'])
    const [first, further] = peer.hellos
    expect((further?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThan(280)
    peer.channels[1]?.close('lost')
    await eventually(() => typesAt(peer)).toEqual(['link.ack', 'link.ack', 'link.default'])
    expect(network.logged('link lost')).toEqual([])
  })

  test('has one socket with split: false', async () => {
    await dialing('split: false, startupDelay: 0s')
    const peer = await peerRouter()
    tell(peer)
    await eventually(() => peer.hellos).toHaveLength(1)
    expect(peer.hellos[0]?.headers.has(9), 'it does not offer several sockets').toBe(false)
  })

  test('has one socket if the other router does not support socket groups', async () => {
    await dialing('startupDelay: 0s')
    const peer = await peerRouter()
    peer.groups = false
    tell(peer)
    await eventually(() => network.logged('link established')).toHaveLength(1)
    expect(peer.hellos[0]?.headers.has(9)).toBe(true)
    expect(await socketsAt(controller)).toEqual([1])
  })

  test('sends all messages of a circuit over one socket, and acknowledgments over separate sockets', async () => {
    const pipes = [new Pipe(), new Pipe(), new Pipe()]
    const [one, two, three] = pipes.map((socket) => {
      const channel: Channel = new Channel({
        socket,
        limits: channelLimits,
        clock: systemClock,
        onHello: () => channel.open(null),
        onMessage: () => null,
        onClose: () => undefined,
      })
      socket.say({ contentType: 0, sequence: -1 })
      return channel
    })
    if (one === undefined || two === undefined || three === undefined) throw new Error('none')
    await settle()
    const addresses = { dialAddress: '', localAddress: '', remoteAddress: '' }
    const fields = { id: 'l1', peerId: 'router2', iteration: 1, isDialed: true, ...addresses }
    const queues = { payloadsMax: 10, acknowledgementsMax: 10 }
    const link = new Link({ ...fields, channel: one, queues })
    link.addSocket(two, 'link.default')
    link.addSocket(three, 'link.ack')
    const send = (circuitId: string, contentType = 1100): boolean =>
      link.trySend({ contentType, headers: new Map([[2256, encodeText(circuitId)]]) }, Infinity)
    for (const circuitId of ['a', 'b', 'a', 'b']) expect(send(circuitId)).toBe(true)
    expect(send('a', 1101)).toBe(true)
    await settle()
    const circuitsAt = (pipe?: Pipe): string[] =>
      (pipe?.sent ?? []).map(
        ({ contentType, headers }) => `${contentType} ${readText(headers, 2256)}`,
      )
    expect(pipes.map((pipe) => circuitsAt(pipe).length)).toEqual([2, 2, 1])
    expect(new Set(circuitsAt(pipes[0])).size).toBe(1)
    expect(circuitsAt(pipes[2])).toEqual(['1101 a'])
    three.close('lost')
    link.removeSocket(three)
    two.close('lost')
    link.removeSocket(two)
    expect([send('a'), send('b'), send('a', 1101)]).toEqual([true, true, true])
    await settle()
    expect(circuitsAt(pipes[0])).toHaveLength(5)
    one.close('over')
  })
})
