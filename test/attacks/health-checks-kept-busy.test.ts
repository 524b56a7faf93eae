import { once } from 'node:events'
import { request } from 'node:https'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { monitoringLimits as limits } from '../../src/overlay/monitoring/limits.ts'
import { eventually, TestNetwork } from '../router/support.ts'
import { freePort } from '../support/ports.ts'

// The attack: one source opens as many connections to the health checks of a router as the listener
// accepts, and stops during the handshake or sends nothing after it. Probes get no response, and
// the operator restarts the router.

/** The first bytes of a ClientHello. */
const HALF_HELLO = Buffer.from('1603010200010001fc0303', 'hex')

let network: TestNetwork
let port: number
const sockets: Socket[] = []
beforeEach(async () => {
  network = await TestNetwork.create()
  port = await freePort()
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await network.close()
})

async function running(handshakeTimeout: string): Promise<void> {
  // All timeouts are longer than the test, so only the limits of connections close one.
  await network.running(
    ['tls:127.0.0.1:1'],
    `tls: {handshakeTimeout: ${handshakeTimeout}}
web: [{name: health, bindPoints: [{interface: "127.0.0.1:${port}", address: "r.test:${port}"}], apis: [{binding: health-checks}], options: {readTimeout: 60s, idleTimeout: 60s}}]
`,
  )
}

async function half(localAddress: string): Promise<Socket> {
  const socket = connectTcp({ host: '127.0.0.1', port, localAddress }).resume()
  socket.on('error', () => undefined)
  sockets.push(socket)
  await once(socket, 'connect').catch(() => undefined)
  socket.write(HALF_HELLO)
  return socket
}

async function silent(localAddress: string): Promise<Socket> {
  const own: object = { localAddress }
  const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ...own })
  socket.on('error', () => undefined)
  sockets.push(socket.resume())
  // A connection above the limit is closed during its handshake.
  await once(socket, 'secureConnect').catch(() => undefined)
  return socket
}

const held = (some: readonly Socket[]): number => some.filter((each) => !each.destroyed).length

/** Status of the response to a probe. */
function probe(localAddress: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        host: '127.0.0.1',
        port,
        path: '/health-checks',
        localAddress,
        agent: false,
        rejectUnauthorized: false,
      },
      (answer) => {
        answer.resume()
        resolve(answer.statusCode ?? 0)
      },
    )
    asked.setTimeout(5000, () => asked.destroy(new Error('no answer in time')))
    asked.on('error', reject)
    asked.end()
  })
}

test('A health check is answered even if its source address also has half-open handshakes', async () => {
  await running('60s')
  const some = await Promise.all(
    Array.from({ length: limits.monitoringConnectionsMax }, () => half('127.0.0.2')),
  )
  await eventually(() => held(some)).toBeLessThanOrEqual(limits.monitoringHandshakesPerSourceMax)
  expect(await probe('127.0.0.2')).toBe(200)
  expect(await probe('127.0.0.3')).toBe(200)
})

test('A health check is answered even if many sources leave their handshakes unfinished', async () => {
  await running('60s')
  const sources = Array.from({ length: 16 }, (_, number) => `127.0.1.${number + 1}`)
  const some = await Promise.all(
    sources.flatMap((source) => Array.from({ length: 16 }, () => half(source))),
  )
  await eventually(() => held(some)).toBeLessThanOrEqual(limits.monitoringHandshakesMax)
  expect(await probe('127.0.0.3')).toBe(200)
})

test('One source can keep only a few connections open, so that a health check from another source is answered', async () => {
  await running('60s')
  const some: Socket[] = []
  for (let count = 0; count < limits.monitoringConnectionsMax; count += 1) {
    some.push(await silent('127.0.0.2'))
  }
  await eventually(() => held(some)).toBeLessThanOrEqual(limits.monitoringConnectionsPerSourceMax)
  expect(await probe('127.0.0.3')).toBe(200)
})

test('A handshake that takes too long is closed, even if bytes keep arriving', async () => {
  await running('1s')
  const socket = await half('127.0.0.2')
  const drip = setInterval(() => socket.write(Buffer.alloc(1)), 100)
  try {
    await eventually(() => socket.destroyed).toBe(true)
  } finally {
    clearInterval(drip)
  }
})
