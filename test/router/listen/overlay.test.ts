import { fromBinary } from '@bufbuild/protobuf'
import { createHash } from 'node:crypto'
import { createSocket } from 'node:dgram'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { CreateFabricCircuitSchema, FaultSchema } from '../../../proto/gen/router_pb.ts'
import { readText, encodeText } from '../../../src/channel/headers.ts'
import { buildRouteMessages } from '../../../src/fabric/circuits/route.ts'
import { freePort } from '../../support/ports.ts'
import { bytes, connected, TestTarget } from '../dial/support.ts'
import { eventually, type ScriptedController, TestNetwork } from '../support.ts'
import { unrouteMessage } from '../../../src/channel/messages/circuits.ts'

// Goal: clients of a router's listeners reach the targets of its dialers, through real circuits.
// Method: a whole router; the controller routes each circuit through it, to the target of the
// service.

let network: TestNetwork
let controller: ScriptedController
let target: TestTarget
let tcpPort: number
let udpPort: number
let circuits: number
/** Terminators by service. */
let terminators: Map<string, { binding: string; address: string }>

beforeEach(async () => {
  network = await TestNetwork.create()
  controller = await network.controller('ctrl1')
  circuits = 0
  terminators = new Map()
  layCircuits()
  tcpPort = await freePort()
  udpPort = await freePort()
  await network.running(
    [controller.address],
    `dialers: [{binding: transport}, {binding: transport_udp}]
listeners:
  - {binding: proxy, address: "tcp:127.0.0.1:${tcpPort}", advertise: "r.test:1", service: web}
  - {binding: proxy_udp, address: "udp:127.0.0.1:${udpPort}", advertise: "r.test:1", service: dns}`,
  )
  await eventually(() => controller.isConnected).toBe(true)
})
afterEach(async () => {
  await network.close()
  await target.close()
})

/** Sets up circuits within one router, as a controller does. */
function layCircuits(): void {
  const asked = new Map<string, { reply: (error: string | null) => void }>()
  controller.handlers.set(1000, (message, channel) => {
    const { service } = fromBinary(CreateFabricCircuitSchema, message.body)
    const host = terminators.get(service)
    circuits += 1
    const ends = { id: `c${circuits}`, ingress: `c${circuits} I`, egress: `c${circuits} E` }
    const reply = (error: string | null): void => {
      const headers = new Map([[1100, encodeText(ends.ingress)]])
      if (error === null)
        channel.reply(message, { contentType: 1001, headers, body: encodeText(ends.id) })
      else channel.reply(message, { contentType: 1016, body: encodeText(error) })
    }
    asked.set(ends.id, { reply })
    const path = { routerIds: [network.routerId], links: [], cost: 0 }
    const dial = { binding: '', address: '', ...host, peerData: new Map() }
    const terms = { attempt: 0, timeoutMs: 10_000, tags: {}, dial }
    for (const route of buildRouteMessages(ends, path, terms)) channel.send(route)
  })
  controller.handlers.set(1022, ({ headers, body }) => {
    const id = Buffer.from(body).toString()
    asked.get(id)?.reply(headers.has(1102) ? null : (readText(headers, 1103) ?? 'failed'))
  })
  controller.handlers.set(1004, ({ body }, channel) => {
    const { id } = fromBinary(FaultSchema, body)
    channel.send(unrouteMessage(id, false))
  })
}

async function serve(onSocket: (socket: Socket) => void): Promise<void> {
  target = await TestTarget.open(onSocket)
  terminators.set('web', { binding: 'transport', address: target.address })
}

/**
 * Sends bytes as fast as the socket accepts them, ends the stream, and computes a digest of the
 * returned bytes.
 */
async function exchange(socket: Socket, total: number): Promise<{ sent: string; got: string }> {
  const [sent, got] = [createHash('sha256'), createHash('sha256')]
  socket.on('data', (chunk: Buffer) => got.update(chunk))
  const ended = new Promise((done) => socket.once('end', done))
  for (const chunk of bytes(total)) {
    sent.update(chunk)
    if (!socket.write(chunk)) await new Promise((done) => socket.once('drain', done))
  }
  socket.end()
  await ended
  return { sent: sent.digest('hex'), got: got.digest('hex') }
}

test('20 MB reach an echo server through a router’s listener and dialer, and return unchanged', async () => {
  await serve((socket) => socket.pipe(socket))
  const { sent, got } = await exchange(await connected(tcpPort), 20_000_000)
  expect(got).toBe(sent)
  await eventually(() => target.sockets.map(({ closed }) => closed)).toEqual([true])
})

test('a target that closes its sending direction first still receives data through the router', async () => {
  let heard = ''
  await serve((socket) => {
    socket.on('data', (chunk: Buffer) => (heard += chunk.toString()))
    socket.end('welcome')
  })
  const socket = await connected(tcpPort)
  let welcome = ''
  socket.on('data', (chunk: Buffer) => (welcome += chunk.toString()))
  await new Promise((done) => socket.once('end', done))
  expect(welcome).toBe('welcome')
  socket.end('thanks')
  await eventually(() => heard).toBe('thanks')
})

test('a client that reads nothing stops the target from sending', async () => {
  const total = 64 * 1024 * 1024
  let sentBytes = 0
  await serve((socket) => {
    void (async () => {
      for (const chunk of bytes(total)) {
        sentBytes += chunk.length
        if (!socket.write(chunk)) await new Promise((done) => socket.once('drain', done))
      }
      socket.end()
    })()
  })
  const socket = await connected(tcpPort)
  socket.write('go')
  let before = 0
  let stillFor = 0
  await eventually(() => {
    stillFor = before === sentBytes && sentBytes > 0 ? stillFor + 1 : 0
    before = sentBytes
    return stillFor
  }).toBeGreaterThan(10)
  expect(sentBytes).toBeLessThan(48 * 1024 * 1024)
  let got = 0
  socket.on('data', (chunk: Buffer) => (got += chunk.length))
  await new Promise((done) => socket.once('end', done))
  expect(got).toBe(total)
})

test('if a target resets its connection, the client’s connection through the router closes', async () => {
  await serve((socket) => socket.once('data', () => socket.resetAndDestroy()))
  const socket = await connected(tcpPort)
  socket.resume()
  socket.write('hello')
  await eventually(() => socket.readableEnded || socket.destroyed).toBe(true)
})

test('if a client program is killed, the connection to its target closes', async () => {
  await serve((socket) => socket.pipe(socket))
  const socket = await connected(tcpPort)
  let heard = ''
  socket.on('data', (chunk: Buffer) => (heard += chunk.toString()))
  socket.write('hello')
  await eventually(() => heard).toBe('hello')
  socket.resetAndDestroy()
  await eventually(() => target.sockets.map(({ closed }) => closed)).toEqual([true])
})

test('if a target refuses a dial, the client’s connection closes and the controller receives the cause', async () => {
  await serve(() => undefined)
  terminators.set('web', { binding: 'transport', address: `tcp:127.0.0.1:${await freePort()}` })
  const socket = await connected(tcpPort)
  socket.resume()
  await eventually(() => socket.readableEnded || socket.destroyed).toBe(true)
  const [result] = controller.ofType(1022)
  expect([...(result?.headers.get(1104) ?? [])]).toEqual([4])
})

test('datagrams of three sizes reach an echo server through a router’s listener and dialer, and return with the same sizes', async () => {
  await serve(() => undefined)
  const server = createSocket('udp4')
  server.on('message', (body, { port, address }) => server.send(body, port, address))
  await new Promise<void>((done) => server.bind(0, '127.0.0.1', done))
  terminators.set('dns', { binding: 'udp', address: `udp:127.0.0.1:${server.address().port}` })
  const client = createSocket('udp4')
  const sizes: number[] = []
  client.on('message', (body) => sizes.push(body.length))
  await new Promise<void>((done) => client.connect(udpPort, '127.0.0.1', done))
  for (const size of [1, 1400, 9000]) {
    client.send(Buffer.alloc(size))
    await eventually(() => sizes.at(-1)).toBe(size)
  }
  expect(sizes).toEqual([1, 1400, 9000])
  client.close()
  server.close()
})
