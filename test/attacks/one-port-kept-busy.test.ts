import { once } from 'node:events'
import { connect as connectTcp, createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'

import { FairShare } from '../../src/lib/bounds/fair-share.ts'
import { limitConnections } from '../../src/lib/bounds/connections.ts'
import { startListening, listeningPort } from '../../src/lib/runtime/listening.ts'
import { socketLimits } from '../../src/overlay/sockets/limits.ts'
import { TlsPortOpener } from '../../src/overlay/sockets/tls-port-opener.ts'
import { linkLimits } from '../../src/router/links/limits.ts'
import { clientHelloBytes, OnePort } from '../router/one-port-support.ts'
import { freePort } from '../support/ports.ts'
import { eventually } from '../router/support.ts'

// The attack: a router uses one port for links and clients. Connections that send no ClientHello,
// or only the ClientHello of a link, use up the slots, so that routers or clients cannot connect.

let router: OnePort
afterEach(() => router.close())

const LONG = 'tls: {handshakeTimeout: 60s}\n'
const held = (some: readonly Socket[]): number => some.filter((each) => !each.destroyed).length

function connection(localAddress: string, bytes: Uint8Array | null = null): Socket {
  const socket = router.kept(connectTcp({ host: '127.0.0.1', port: router.port, localAddress }))
  if (bytes !== null) socket.write(bytes)
  return socket
}

describe('Connections that have not sent a TLS ClientHello', () => {
  test('are limited for one source, and routers and clients at that source still connect', async () => {
    router = await OnePort.open(LONG)
    const { hellosWaitingPerSourceMax } = socketLimits
    const some = Array.from({ length: hellosWaitingPerSourceMax + 40 }, () =>
      connection('127.0.0.1'),
    )
    await eventually(() => held(some)).toBeLessThanOrEqual(hellosWaitingPerSourceMax)
    await router.linked('127.0.0.1')
    expect((await router.client('ann')).isAdmitted).toBe(true)
  })

  test('are limited in total, and then other sources still connect', async () => {
    router = await OnePort.open(LONG)
    const { hellosWaitingMax } = socketLimits
    const sources = Array.from({ length: 12 }, (_, at) => `127.0.1.${at + 1}`)
    const each = Math.ceil((hellosWaitingMax + 100) / sources.length)
    const some: Socket[] = []
    // Opens the connections of one source after those of another, because the accept queue of the
    // system is shorter than their number.
    for (const source of sources) {
      const opened = Array.from({ length: each }, () => connection(source))
      some.push(...opened)
      await Promise.all(opened.map((socket) => once(socket, 'connect')))
    }
    await eventually(() => held(some)).toBeLessThanOrEqual(hellosWaitingMax)
    await router.linked('127.0.0.3')
    expect((await router.client('ann')).isAdmitted).toBe(true)
  })
})

test('Connections without a ClientHello count toward one limit of all listeners', async () => {
  router = await OnePort.open()
  const room = new FairShare(8)
  const bind = { host: '127.0.0.1', port: await freePort() }
  const ports = new TlsPortOpener({
    addresses: [bind, bind],
    handshakeTimeoutMs: 60_000,
    hellosWaitingMax: 1000,
    hellosWaitingPerSourceMax: 1000,
    room,
    log: { warn: () => undefined },
  })
  const protocols = { protocols: ['http/1.1'], clientsWithout: 'all' } as const
  const port = await ports.open(createTlsServer(), bind, 'web[0].bind', protocols)
  const some = Array.from({ length: 24 }, () => router.kept(connectTcp(port.port, bind.host)))
  await eventually(() => some.filter((each) => each.destroyed).length).toBeGreaterThanOrEqual(16)
  expect(held(some)).toBeGreaterThan(0)
  for (const each of some) each.destroy()
  await eventually(() => room.largest()).toBe('')
  await port.close()
})

test('Link connections that stop after the ClientHello are limited by the link listener’s limit, and clients still connect', async () => {
  router = await OnePort.open(LONG)
  const hello = await clientHelloBytes(['ziti-link'])
  const { linkHandshakesPerSourceMax } = linkLimits
  const some = Array.from({ length: 3 * linkHandshakesPerSourceMax }, () =>
    connection('127.0.0.1', hello),
  )
  await eventually(() => held(some)).toBeLessThanOrEqual(linkHandshakesPerSourceMax)
  expect((await router.client('ann')).isAdmitted).toBe(true)
  await router.linked('127.0.0.1')
})

test('A ClientHello that arrives late does not extend the handshake timeout', async () => {
  router = await OnePort.open('tls: {handshakeTimeout: 1500ms}\n')
  const hello = await clientHelloBytes(['ziti-edge'])
  const lasted = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const socket = connection('127.0.0.1')
      await once(socket, 'connect')
      const fromMs = performance.now()
      const timer = setTimeout(() => socket.write(hello), 1200)
      await once(socket, 'close')
      clearTimeout(timer)
      return performance.now() - fromMs
    }),
  )
  // If the handshake had a separate timeout, it would end after 2700 ms at the earliest.
  expect(Math.min(...lasted)).toBeLessThan(2600)
})

test('Connections that another server of the process accepted count toward the limit of all open connections', async () => {
  router = await OnePort.open()
  const limited = createServer(() => undefined)
  limitConnections(limited, {
    connectionsMax: 2,
    connectionsPerSourceMax: 10,
    handshakeTimeoutMs: null,
  })
  const server = createServer((socket) => limited.emit('connection', socket.resume()))
  await startListening(server, { host: '127.0.0.1', port: 0 })
  const open = (): Socket => router.kept(connectTcp(listeningPort(server), '127.0.0.1'))
  const [first, second] = [open(), open()]
  await Promise.all([once(first, 'connect'), once(second, 'connect')])
  const third = open()
  await eventually(() => third.destroyed).toBe(true)
  expect(held([first, second])).toBe(2)
  first.destroy()
  second.destroy()
  server.close()
})
