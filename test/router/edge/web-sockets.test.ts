import { once } from 'node:events'
import { request } from 'node:https'
import type { Duplex } from 'node:stream'
import { connect } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'

import { EdgeBench, eventually, madeCircuit, serviceToken, webSocketStream } from './support.ts'

// Goal: a client in a browser uses the network through a `wss:` listener as other clients do
// through `tls:`. Method: a real edge with a real listener; TLS within a WebSocket of the package
// `ws`.

let bench: EdgeBench
afterEach(() => bench.close())

describe('A listener with the protocol wss', () => {
  beforeEach(async () => {
    bench = await EdgeBench.open({ protocol: 'wss' })
  })

  test('admits a client that proves its certificate in a TLS session inside the web socket', async () => {
    const client = await bench.admitted('ann')
    expect([client.isAdmitted, client.socket.alpnProtocol]).toEqual([true, 'ziti-edge'])
    expect(bench.logged('client connected')[0]?.fields['remoteAddress']).toMatch(
      /^127\.0\.0\.1:\d+$/,
    )
    expect(bench.edge.addresses).toEqual([{ host: '127.0.0.1', port: 1, protocol: 'wss' }])
  })

  test('refuses a client without a certificate, and a client with another client’s token', async () => {
    const [ann, mallory] = [await bench.person('ann'), await bench.person('mallory')]
    bench.controller.tellSessions([ann])
    const bare = await bench.connect(ann, { key: null })
    expect([bare.isAdmitted, bare.refusal]).toEqual([false, 'no certificate was presented'])
    const stolen = await bench.connect(ann, { key: mallory.key })
    expect([stolen.isAdmitted, stolen.refusal]).toEqual([
      false,
      'the certificate does not belong to the API session',
    ])
  })

  test('carries a circuit’s data completely in both directions', async () => {
    const client = await bench.admitted('ann')
    bench.controller.circuits = () => madeCircuit('c1')
    await client.request(60_783, 1, serviceToken('s1'))
    await eventually(() => bench.circuits.ends).toHaveLength(1)
    const end = bench.circuits.end('c1')
    const piece = Buffer.alloc(300_000, 'abcdefg')
    client.send(60_786, 1, piece)
    await eventually(() => end.texts.join('') === piece.toString()).toBe(true)
    for (let sent = 0; sent < 4; sent += 1) end.arrive(piece)
    await eventually(() => client.textsOf(1).join('')).toBe(piece.toString().repeat(4))
  })

  test('sends each TLS record as one web socket message, and each channel message in separate records', async () => {
    const lengths: boolean[] = []
    const person = await bench.person('ann')
    bench.controller.tellSessions([person])
    const through = (port: number): Duplex => {
      const stream = webSocketStream(port)
      stream.on('data', (message: Buffer) => {
        lengths.push(message.length === 5 + message.readUInt16BE(3))
      })
      return stream
    }
    const client = await bench.connect(person, { through })
    bench.controller.circuits = () => madeCircuit('c1')
    await client.request(60_783, 1, serviceToken('s1'))
    await eventually(() => bench.circuits.ends).toHaveLength(1)
    const records: string[] = []
    client.socket.on('data', (record: Buffer) => records.push(record.toString('hex', 0, 4)))
    for (let sent = 0; sent < 100; sent += 1) bench.circuits.end('c1').arrive(`word ${sent} `)
    await eventually(() => client.textsOf(1).length).toBe(100)
    expect([...new Set(records)], 'the first bytes of a message').toEqual(['0306090c'])
    expect(lengths.every(Boolean)).toBe(true)
  })

  test('closes a client’s channel when the client closes its web socket', async () => {
    const client = await bench.admitted('ann')
    client.socket.end()
    await eventually(() => bench.edge.channels).toBe(0)
    await eventually(() => client.closedReason).toBe('closed by the peer')
  })

  test('negotiates no compression, requests no certificate, and accepts any origin', async () => {
    const [port = 0] = bench.edge.ports
    const web = new WebSocket(`wss://127.0.0.1:${port}/ws`, {
      rejectUnauthorized: false,
      origin: 'https://elsewhere.example',
    })
    await once(web, 'open')
    expect([web.protocol, web.extensions]).toEqual(['', ''])
    web.terminate()
  })

  test.each([
    ['GET', '/', 404],
    ['GET', '/ws/', 404],
    ['GET', '/ws', 426],
    ['POST', '/ws', 405],
  ])(
    'answers %s %s (which is no WebSocket upgrade) with %i and closes the connection',
    async (method, path, status) => {
      const [port = 0] = bench.edge.ports
      const asked = request({ port, path, method, rejectUnauthorized: false, agent: false })
      asked.end(method === 'POST' ? Buffer.alloc(100_000) : undefined)
      const [answer] = await once(asked, 'response')
      expect([answer.statusCode, answer.headers.connection]).toEqual([status, 'close'])
      answer.resume()
      await once(answer, 'close')
    },
  )

  test('answers a WebSocket upgrade at another path with 404', async () => {
    const [port = 0] = bench.edge.ports
    const web = new WebSocket(`wss://127.0.0.1:${port}/other`, { rejectUnauthorized: false })
    const [error] = await once(web, 'error')
    expect(error.message).toBe('Unexpected server response: 404')
  })

  test('presents its certificate to a browser, also after a renewal', async () => {
    const [port = 0] = bench.edge.ports
    const shown = async (): Promise<string> => {
      const socket = connect({ port, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
      await once(socket, 'secureConnect')
      const { fingerprint256 } = socket.getPeerCertificate()
      expect(socket.alpnProtocol).toBe('http/1.1')
      socket.destroy()
      return fingerprint256
    }
    const before = await shown()
    bench.edge.renew()
    expect(await shown()).toBe(before)
  })
})

describe('The timeouts in transport.ws and transport.wss', () => {
  test('make the router send pings to a client, and close the web socket if the client does not respond', async () => {
    bench = await EdgeBench.open({
      protocol: 'wss',
      sections: 'transport: {ws: {pingInterval: 1, pongTimeout: 2}}',
    })
    const [port = 0] = bench.edge.ports
    const lively = await bench.admitted('ann')
    const silent = new WebSocket(`wss://127.0.0.1:${port}/ws`, {
      rejectUnauthorized: false,
      autoPong: false,
    })
    let pings = 0
    silent.on('ping', () => (pings += 1))
    await once(silent, 'close')
    expect(pings).toBeGreaterThan(0)
    expect([lively.closedReason, bench.edge.channels]).toEqual([null, 1])
  })

  test('close a connection whose HTTP request is not complete in time', async () => {
    bench = await EdgeBench.open({
      protocol: 'wss',
      sections: 'transport: {ws: {readTimeout: 1, handshakeTimeout: 3600}}',
    })
    const [port = 0] = bench.edge.ports
    const slow = connect({ port, rejectUnauthorized: false })
    slow.write('GET /ws HTTP/1.1\r\n')
    slow.resume()
    await once(slow, 'close')
  })

  test('close a connection on which no channel is opened in time, with the value in transport.wss if both sections have one', async () => {
    bench = await EdgeBench.open({
      protocol: 'wss',
      sections: 'transport: {wss: {handshakeTimeout: 1}, ws: {handshakeTimeout: 3600}}',
    })
    const [port = 0] = bench.edge.ports
    const web = new WebSocket(`wss://127.0.0.1:${port}/ws`, { rejectUnauthorized: false })
    await once(web, 'close')
    const idle = connect({ port, rejectUnauthorized: false })
    idle.resume()
    await once(idle, 'close')
  })
})

describe('A web socket whose client reads slowly', () => {
  beforeEach(async () => {
    bench = await EdgeBench.open({ protocol: 'wss' })
  })

  test('leaves unread data at the other endpoints of the client’s circuits', async () => {
    const client = await bench.admitted('ann')
    for (let id = 1; id <= 8; id += 1) {
      bench.controller.circuits = () => madeCircuit(`c${id}`)
      await client.request(60_783, id, serviceToken('s1'))
    }
    await eventually(() => bench.circuits.ends).toHaveLength(8)
    client.socket.pause()
    const piece = new Uint8Array(256 * 1024)
    for (let sent = 0; sent < 32; sent += 1) {
      for (const end of bench.circuits.ends) end.arrive(piece)
    }
    const left = (): number =>
      bench.circuits.ends.reduce((sum, { pendingCount }) => sum + pendingCount, 0)
    const held = left()
    expect(held).toBeGreaterThan(8 * 32 - 80)
    client.socket.resume()
    await eventually(left).toBeLessThan(held)
  })
})
