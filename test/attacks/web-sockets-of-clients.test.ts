import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect as connectTcp, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect, type TLSSocket } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'

import { systemClock } from '../../src/lib/clock.ts'
import { listeningPort } from '../../src/lib/runtime/listening.ts'
import { edgeLimits } from '../../src/router/edge/limits.ts'
import { WebSocketStream } from '../../src/router/edge/web-socket-stream.ts'
import { EdgeBench, eventually, webSocketStream } from '../router/edge/support.ts'

// The attack: a client of a `wss:` listener opens web sockets and sends nothing, sends frames that
// it must not send, or reads nothing, so that other clients find no free slot or the memory of the
// router fills.

const MIB = 1024 * 1024
const closers: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function benchWith(timeouts: string): Promise<{ bench: EdgeBench; port: number }> {
  const sections = `transport: {wss: {${timeouts}}}`
  const bench = await EdgeBench.open({ protocol: 'wss', sections })
  closers.push(() => bench.close())
  return { bench, port: bench.edge.ports[0] ?? 0 }
}

function opened(port: number): WebSocket {
  const web = new WebSocket(`wss://127.0.0.1:${port}/ws`, { rejectUnauthorized: false })
  web.on('error', () => undefined)
  closers.push(() => web.terminate())
  return web
}

const upgrade = [
  'GET /ws HTTP/1.1',
  'host: router',
  'connection: upgrade',
  'upgrade: websocket',
  'sec-websocket-version: 13',
  'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
  '\r\n',
].join('\r\n')

/** A web socket for which the test writes the frames. */
async function raw(socket: Socket): Promise<void> {
  closers.push(() => {
    socket.destroy()
  })
  socket.on('error', () => undefined)
  socket.write(upgrade)
  const [head] = (await once(socket, 'data')) as [Buffer]
  expect(head.toString()).toMatch(/^HTTP\/1\.1 101 /)
}

async function rawClient(port: number): Promise<TLSSocket> {
  const socket = connect({ port, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  await raw(socket)
  return socket
}

/** The start of a masked binary frame. */
function frameHead(bytes: number): Buffer {
  const head = Buffer.alloc(14)
  head.set([0x82, 0xff])
  head.writeBigUInt64BE(BigInt(bytes), 2)
  return head
}

/** Code of the close frame that ends a connection. */
async function closeCodeOf(socket: Socket): Promise<number | null> {
  const received: Buffer[] = []
  socket.on('data', (chunk: Buffer) => received.push(chunk))
  await once(socket, 'close')
  const [first, , ...code] = Buffer.concat(received)
  return first === 0x88 ? Buffer.from(code).readUInt16BE() : null
}

describe('web sockets on which no channel was opened', () => {
  test('are closed at the handshake timeout', async () => {
    const { port } = await benchWith('handshakeTimeout: 1')
    const web = opened(port)
    const http = connect({ port, rejectUnauthorized: false })
    http.resume()
    let closed = 0
    for (const one of [web, http]) one.once('close', () => (closed += 1))
    await eventually(() => closed).toBe(2)
  })

  test('are limited per source: above the limit the source’s oldest web socket is closed, and an honest client can still connect', async () => {
    const { bench, port } = await benchWith('handshakeTimeout: 3600')
    const first = opened(port)
    await once(first, 'open')
    let isClosed = false
    first.once('close', () => (isClosed = true))
    for (let count = 0; count < edgeLimits.clientsWaitingPerSourceMax; count += 16) {
      const some = Array.from({ length: 16 }, () => opened(port))
      await Promise.all(some.map((web) => once(web, 'open')))
    }
    await eventually(() => isClosed).toBe(true)
    expect((await bench.admitted('ann')).isAdmitted).toBe(true)
  })

  test('are closed when they send more bytes than a handshake and a hello', async () => {
    const { port } = await benchWith('handshakeTimeout: 3600')
    const socket = await rawClient(port)
    socket.write(frameHead(edgeLimits.webSocketMessageBytesMax))
    socket.write(Buffer.alloc(2 * edgeLimits.webSocketAdmissionBytesMax))
    socket.resume()
    let isClosed = false
    socket.once('close', () => (isClosed = true))
    await eventually(() => isClosed).toBe(true)
  })
})

describe('web socket frames that a client may not send', () => {
  test('close the web socket if their declared length exceeds the maximum', async () => {
    const { port } = await benchWith('pongTimeout: 2, pingInterval: 3600')
    const socket = await rawClient(port)
    socket.write(frameHead(edgeLimits.webSocketMessageBytesMax + 1))
    expect(await closeCodeOf(socket)).toBe(1009)
  })

  test('close the web socket if they contain text', async () => {
    const { port } = await benchWith('')
    const web = opened(port)
    await once(web, 'open')
    web.send('text')
    expect((await once(web, 'close'))[0]).toBe(1003)
  })

  test('close the web socket if they are not masked', async () => {
    const { port } = await benchWith('')
    const socket = await rawClient(port)
    socket.write(Buffer.from([0x82, 0x01, 0x00]))
    expect(await closeCodeOf(socket)).toBe(1002)
  })

  test('close the web socket if they fragment a message endlessly', async () => {
    const { port } = await benchWith('')
    const socket = await rawClient(port)
    const empty = Buffer.from([0x00, 0x80, 0, 0, 0, 0])
    socket.write(Buffer.from([0x02, 0x80, 0, 0, 0, 0]))
    socket.write(Buffer.concat(Array.from({ length: 1000 }, () => empty)))
    expect(await closeCodeOf(socket)).toBe(1008)
  })

  test('do not affect other clients', async () => {
    const { bench, port } = await benchWith('')
    const ann = await bench.admitted('ann')
    const stream = webSocketStream(port)
    stream.resume()
    stream.write('no TLS record')
    await once(stream, 'end')
    await ann.channel.request({ contentType: 3 })
  })
})

interface Pair {
  readonly stream: WebSocketStream
  readonly web: WebSocket
  readonly connection: Duplex & { readonly bytesRead: number }
  readonly client: Socket
}

/** The router's stream over a real connection, and the client's side of it. */
async function pair(pongMsMax = 3_600_000): Promise<Pair> {
  const upgrades = new WebSocketServer({ noServer: true, autoPong: false })
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => {
    server.close()
  })
  const accepted = Promise.withResolvers<Omit<Pair, 'client'>>()
  server.on('upgrade', (request, socket, head) => {
    upgrades.handleUpgrade(request, socket, head, (web) => {
      const connection = socket as Pair['connection']
      const timeouts = { pingEveryMs: pongMsMax, pongMsMax }
      const stream = new WebSocketStream({ web, connection, clock: systemClock, ...timeouts })
      closers.push(() => {
        stream.destroy()
      })
      accepted.resolve({ stream, web, connection })
    })
  })
  const client = connectTcp(listeningPort(server), '127.0.0.1')
  await raw(client)
  return { ...(await accepted.promise), client }
}

describe('the stream of a web socket', () => {
  test('stops reading when its consumer stops', async () => {
    const { stream, web, client } = await pair()
    const message = Buffer.concat([frameHead(MIB), Buffer.alloc(MIB)])
    for (let sent = 0; sent < 64; sent += 1) client.write(message)
    await eventually(() => web.isPaused).toBe(true)
    expect(stream.readableLength).toBeLessThanOrEqual(2 * MIB)
    let bytes = 0
    stream.on('data', (chunk: Buffer) => (bytes += chunk.length))
    await eventually(() => bytes).toBe(64 * MIB)
  })

  test('sends no more than the client reads', async () => {
    const { stream, web, client } = await pair()
    client.pause()
    const record = Buffer.concat([Buffer.from([0x17, 3, 3, 0x40, 0]), Buffer.alloc(0x40_00)])
    const chunk = Buffer.concat(Array.from({ length: 64 }, () => record))
    for (let sent = 0; sent < 64; sent += 1) stream.write(chunk)
    expect([web.bufferedAmount < 3 * MIB, stream.writableLength > 48 * MIB]).toEqual([true, true])
    let bytes = 0
    client.on('data', (part: Buffer) => (bytes += part.length))
    client.resume()
    await eventually(() => bytes).toBe(64 * (chunk.length + 64 * 4))
  })

  test('answers pings only as fast as the client reads', async () => {
    const { connection, client } = await pair()
    client.pause()
    const ping = Buffer.alloc(126)
    ping.set([0x89, 0x80 | 120])
    const pings = Buffer.concat(Array.from({ length: 1000 }, () => ping))
    for (let round = 0; round < 240; round += 1) {
      if (!client.write(pings)) await once(client, 'drain')
    }
    await eventually(() => connection.bytesRead).toBeGreaterThan(240 * pings.length)
    expect(connection.writableLength).toBeLessThan(MIB)
  })

  test('closes when its client does not respond to pings', async () => {
    const { stream, client } = await pair(200)
    client.resume()
    await eventually(() => stream.destroyed).toBe(true)
  })
})
