import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'

import { FairShare } from '../../src/lib/bounds/fair-share.ts'
import { TlsPortOpener } from '../../src/overlay/sockets/tls-port-opener.ts'
import { admin } from '../api/support/controller.ts'
import { faultsOf, GOOD } from '../config/controller/support.ts'
import { SharedPort } from '../controller/shared-port.ts'
import { eventually } from '../router/support.ts'
import { memberLeaf } from '../support/member-leaf.ts'
import { freePort } from '../support/ports.ts'
import { proxyHeader, rawProxyHeader } from '../support/proxy-header.ts'

// The attack: behind load balancers, a host claims the address of another client, so that the audit
// log shows that address or the limits of another client apply; or it keeps the port busy with
// headers.

const BALANCER = '127.0.0.2'
const STRANGER = '127.0.0.3'
const balancers = [`${BALANCER}/32`]
const CLIENT = '198.51.100.7'
const OTHER_CLIENT = '198.51.100.8'
const VERSION =
  'GET /edge/client/v1/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'

let port: SharedPort
const more: Socket[] = []
afterEach(async () => {
  for (const socket of more.splice(0)) socket.destroy()
  await port.close()
})

/** A TCP connection from this address that begins with these bytes. */
async function connection(from: string, bytes: Uint8Array): Promise<Socket> {
  const socket = port.plain(from)
  await once(socket, 'connect')
  socket.write(bytes)
  return socket
}

/** A TLS connection through the load balancer. */
async function balanced(client: string, protocols = ['http/1.1']): Promise<TLSSocket> {
  const socket = await connection(BALANCER, proxyHeader(client, 40_000))
  return await port.handshake({ socket, ALPNProtocols: protocols })
}

async function answerTo(socket: Socket, request: string): Promise<string> {
  let text = ''
  socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')))
  socket.write(request)
  await eventually(() => socket.destroyed).toBe(true)
  return text
}

/** Address that the session of a log-in shows. */
async function addressOfLogIn(socket: TLSSocket): Promise<string> {
  const body = JSON.stringify(admin)
  const head = `POST /edge/management/v1/authenticate?method=password HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json`
  const text = await answerTo(
    socket,
    `${head}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  )
  return /"ipAddress":"([^"]*)"/.exec(text)?.[1] ?? text
}

describe.each([
  ['a separate port', true],
  ['the port that it shares with routers', false],
])('A web listener behind load balancers at %s', (_, isSeparate) => {
  const open = async (limits = {}): Promise<void> => {
    port = await SharedPort.open(limits, { balancers, isSeparate })
  }

  test('takes the client address from the PROXY header of each connection, and refuses a second PROXY header, before or inside TLS', async () => {
    await open()
    expect(await addressOfLogIn(await balanced(CLIENT))).toBe(CLIENT)
    expect(await addressOfLogIn(await balanced('2001:db8::7'))).toBe('2001:db8::7')
    const within = await balanced(CLIENT)
    const forged = proxyHeader(OTHER_CLIENT, 1).toString('latin1')
    expect(await answerTo(within, forged + VERSION)).toMatch(/^HTTP\/1.1 400 /)
    const before = await connection(BALANCER, proxyHeader(CLIENT, 1))
    before.write(proxyHeader(OTHER_CLIENT, 1))
    expect((await port.handshake({ socket: before })).destroyed).toBe(true)
  })

  test('refuses every host that is not a load balancer, with or without a PROXY header', async () => {
    await open()
    for (const bytes of [proxyHeader(CLIENT, 1), Buffer.alloc(0)]) {
      const socket = await connection(STRANGER, bytes)
      await eventually(() => socket.destroyed).toBe(true)
    }
    expect(port.warnings).toEqual([
      `connection refused: its address is not in proxyProtocol.from {"listener":"web[0].bind","address":"${STRANGER}"}`,
    ])
  })

  test('refuses a load balancer’s connections that do not begin with a valid PROXY header', async () => {
    await open()
    const tooLong = rawProxyHeader(0x21, 0x11, Buffer.alloc(521)).subarray(0, 16)
    const v1 = Buffer.from('PROXY TCP4 198.51.100.7 127.0.0.1 1 443\r\n')
    for (const bytes of [Buffer.from([22, 3, 1, 0]), v1, tooLong]) {
      const socket = await connection(BALANCER, bytes)
      await eventually(() => socket.destroyed).toBe(true)
    }
    expect(port.warnings.map((line) => line.split(' {')[0])).toEqual([
      'connection refused: it sent no PROXY header',
      'connection refused: it sent version 1 of the PROXY protocol, and only version 2 is accepted',
      'connection refused: its PROXY header is too long',
    ])
  })

  test('limits the connections of each client, not those of the load balancer', async () => {
    await open({ connectionsPerSourceMax: 2 })
    const held = [await balanced(CLIENT), await balanced(CLIENT)]
    expect((await balanced(CLIENT)).destroyed).toBe(true)
    expect((await balanced(OTHER_CLIENT)).destroyed).toBe(false)
    expect(held.map((socket) => socket.destroyed)).toEqual([false, false])
  })

  test('answers a health check that the load balancer itself sends', async () => {
    await open()
    const socket = await connection(BALANCER, rawProxyHeader(0x20, 0x00, Buffer.alloc(0)))
    const secured = await port.handshake({ socket })
    expect(await answerTo(secured, VERSION)).toMatch(/^HTTP\/1.1 200 /)
  })
})

test('A controller uses the address in the PROXY header as the address of a router behind a load balancer', async () => {
  port = await SharedPort.open({}, { balancers })
  port.stage.admitNext('er1')
  const below = await connection(BALANCER, proxyHeader(CLIENT, 40_000))
  expect(await port.connectsRouter(await memberLeaf('er1'), undefined, below)).toBe(true)
  expect(port.stage.channels.connection('er1')?.address).toBe(CLIENT)
})

describe('Connections whose PROXY header is incomplete', () => {
  /** A port that expects PROXY headers from 127.0.0.1. */
  async function openPort(handshakeTimeoutMs: number, room = new FairShare(1000)) {
    port = await SharedPort.open()
    const ports = new TlsPortOpener({
      addresses: [],
      balancers: () => ['127.0.0.1/32'],
      handshakeTimeoutMs,
      hellosWaitingMax: 8,
      hellosWaitingPerSourceMax: 8,
      room,
      log: { warn: () => undefined },
    })
    const protocols = { protocols: ['http/1.1'], clientsWithout: 'all' } as const
    const bind = { host: '127.0.0.1', port: await freePort() }
    return await ports.open(createTlsServer(), bind, 'web[0].bind', protocols)
  }

  function silent(at: number): Socket {
    const socket = connectTcp(at, '127.0.0.1').on('error', () => undefined)
    more.push(socket)
    return socket
  }

  test('are limited in total, and are closed when the port closes', async () => {
    const room = new FairShare(1000)
    const opened = await openPort(60_000, room)
    for (let count = 0; count < 24; count += 1) silent(opened.port)
    const held = (): number => more.filter((socket) => !socket.destroyed).length
    await eventually(held).toBe(8)
    await opened.close()
    await eventually(held).toBe(0)
    await eventually(() => room.largest()).toBe('')
  })

  test('are closed at the handshake timeout, even if bytes keep arriving', async () => {
    const opened = await openPort(300)
    const header = proxyHeader(CLIENT, 1)
    const slow = silent(opened.port)
    let at = 0
    const dripping = setInterval(() => slow.write(header.subarray(at, ++at)), 100)
    await eventually(() => slow.destroyed).toBe(true)
    clearInterval(dripping)
    expect(at).toBeLessThan(header.length)
    await opened.close()
  })
})

test('A configuration that treats every host as a load balancer is refused', () => {
  const from = (network: string): string[] =>
    faultsOf(`${GOOD}    proxyProtocol: {from: ["${network}"]}\n`)
  expect(from('10.0.0.0/8')).toEqual([])
  for (const network of ['0.0.0.0/0', '::/0']) {
    expect(from(network)).toEqual([expect.stringContaining('lets every host choose its address')])
  }
})
