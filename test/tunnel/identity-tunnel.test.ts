import { createHash, randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { LogInRefusedError } from '../../src/tunnel/controller-api.ts'
import { echoDatagrams, echoServer } from '../router/tunnel/support.ts'
import { freePort } from '../support/ports.ts'
import { eventually, SessionEndedError, type ShownService, TunnelStage } from './support.ts'

// Goal: a tunnel on a host without a router hosts and reaches services through an edge router, and
// follows sessions, services and edge routers. Method: the tunnels and one of our routers over real
// channels; the test plays the controllers and their API.

let stage: TunnelStage
const closing: (() => void)[] = []
beforeEach(async () => {
  stage = await TunnelStage.create()
})
afterEach(async () => {
  for (const close of closing.splice(0)) close()
  await stage.close()
})

const hostOf = (port: number, protocol = 'tcp') => ({ protocol, address: '127.0.0.1', port })

function service(
  id: string,
  permissions: ShownService['permissions'],
  config: ShownService['config'] = {},
  encryptionRequired = true,
): ShownService {
  return { id, permissions, config, encryptionRequired }
}

/** A host and a client of one service that echoes. */
async function joined(encryptionRequired = true) {
  const target = await echoServer()
  closing.push(target.close)
  const port = await freePort()
  const config = { 'host.v1': hostOf(target.port) }
  const host = await stage.tunnel('host1', [service('s1', ['Bind'], config, encryptionRequired)])
  const dialable = [service('s1', ['Dial'], {}, encryptionRequired)]
  const client = await stage.tunnel('ann', dialable, [
    { name: 'name of s1', port, protocol: 'tcp' },
  ])
  await host.tunnel.start()
  await client.tunnel.start()
  await eventually(() => stage.terminators.size).toBe(1)
  await eventually(() => stage.logged('service offered').length).toBe(1)
  return { port, host, client, target }
}

/** Sends all data, ends the stream, and reads until the other side ends. */
async function exchanged(port: number, data: Uint8Array): Promise<Buffer> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const parts: Buffer[] = []
  socket.on('data', (part: Buffer) => parts.push(part))
  socket.end(data)
  await once(socket, 'end')
  socket.destroy()
  return Buffer.concat(parts)
}

async function opened(
  port: number,
): Promise<{ socket: Socket; said: (word: string) => Promise<string> }> {
  const socket = connect({ port, host: '127.0.0.1' })
  await once(socket, 'connect')
  closing.push(() => socket.destroy())
  const said = async (word: string): Promise<string> => {
    socket.write(word)
    const [read] = (await once(socket, 'data')) as [Buffer]
    return read.toString()
  }
  return { socket, said }
}

function closeOf(socket: Socket): Promise<void> {
  socket.on('error', () => undefined)
  return new Promise((done) => socket.on('close', () => done()))
}

const sha256 = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex')

describe.each([
  ['with encryption', true],
  ['without encryption', false],
])('A TCP service (%s)', (_what, isEncrypted) => {
  test('that one tunnel hosts is reachable through a port of another tunnel, and both directions close separately', async () => {
    const { port, client, host } = await joined(isEncrypted)
    const [terminator] = stage.terminators.values()
    expect(terminator?.peerData[1003]?.length).toBe(isEncrypted ? 32 : undefined)
    const data = randomBytes(3_000_000)
    expect(sha256(await exchanged(port, data))).toBe(sha256(data))
    expect(client.api.followed).toEqual(['https://ctrl2.test:1280'])
    const sessions = ({ asked }: typeof host.api) => asked.filter((path) => path === '/sessions')
    expect(sha256(await exchanged(port, data))).toBe(sha256(data))
    expect([sessions(host.api), sessions(client.api)], 'service sessions are kept').toEqual([
      ['/sessions'],
      ['/sessions'],
    ])
  })
})

describe('The client of a tunnel gets a reset instead of a regular end of the stream', () => {
  type Joined = Awaited<ReturnType<typeof joined>>

  async function endAfter(fail: (network: Joined) => unknown): Promise<unknown> {
    const network = await joined()
    const { socket, said } = await opened(network.port)
    expect(await said('half')).toBe('half')
    const end = once(socket, 'end').catch((error: NodeJS.ErrnoException) => error.code)
    await fail(network)
    return await end
  }

  test('when the target resets its connection', async () => {
    expect(await endAfter(({ target }) => target.sockets[0]?.resetAndDestroy())).toBe('ECONNRESET')
  })

  // The controllers of this test remove no circuit, so the tunnel itself reports the end.
  test('when the tunnel that hosts the service stops', async () => {
    expect(await endAfter(({ host }) => host.tunnel.stop())).toBe('ECONNRESET')
  })
})

test('A tunnel reaches a service that it also hosts through the same edge router', async () => {
  const target = await echoServer()
  closing.push(target.close)
  const port = await freePort()
  const both = service('s1', ['Bind', 'Dial'], { 'host.v1': hostOf(target.port) })
  const { tunnel } = await stage.tunnel(
    'ann',
    [both],
    [{ name: 'name of s1', port, protocol: 'tcp' }],
  )
  await tunnel.start()
  await eventually(() => stage.terminators.size).toBe(1)
  await eventually(() => stage.logged('service offered').length).toBe(1)
  const data = randomBytes(1_000_000)
  expect(sha256(await exchanged(port, data))).toBe(sha256(data))
  const { said, socket } = await opened(port)
  expect(await said('hello')).toBe('hello')
  const closed = closeOf(socket)
  const circuitId = stage.circuits.at(-1) ?? ''
  stage.unroute(circuitId)
  await closed
  await eventually(() => tunnel.figures.openCircuits).toBe(0)
})

test('A UDP service carries datagrams between two tunnels', async () => {
  const target = await echoDatagrams()
  closing.push(target.close)
  const port = await freePort()
  const config = { 'host.v1': hostOf(target.port, 'udp') }
  const host = await stage.tunnel('host1', [service('s1', ['Bind'], config)])
  const ports = [{ name: 'name of s1', port, protocol: 'udp' } as const]
  const client = await stage.tunnel('ann', [service('s1', ['Dial'])], ports)
  await host.tunnel.start()
  await client.tunnel.start()
  await eventually(() => stage.terminators.size).toBe(1)
  await eventually(() => stage.logged('service offered').length).toBe(1)
  const socket = createSocket('udp4')
  closing.push(() => socket.close())
  socket.send('hello', port, '127.0.0.1')
  const [read] = (await once(socket, 'message')) as [Buffer]
  expect(read.toString()).toBe('hello')
})

test('The log of a tunnel reports a hosted service, and a configured service that the identity may not dial', async () => {
  const config = { 'host.v1': hostOf(await freePort()) }
  const host = await stage.tunnel('host1', [service('s1', ['Bind'], config)])
  const ports = [{ name: 'nosuch', port: await freePort(), protocol: 'tcp' } as const]
  const client = await stage.tunnel('ann', [service('s1', ['Dial'])], ports)
  await host.tunnel.start()
  await client.tunnel.start()
  await eventually(() => stage.logged('service not offered').map(({ fields }) => fields)).toEqual([
    {
      identityId: 'ann',
      service: 'nosuch',
      reason: 'the identity may dial no service of this name',
    },
  ])
  await eventually(() => stage.logged('service hosted')[0]?.fields['service']).toBe('name of s1')
})

test('A tunnel stops hosting a service that it may no longer host, and closes the connections of the service', async () => {
  const { port, host } = await joined()
  const { socket, said } = await opened(port)
  expect(await said('hello')).toBe('hello')
  const closed = closeOf(socket)
  host.api.change([])
  await closed
  await eventually(() => stage.terminators.size).toBe(0)
  expect(stage.logged('service hosted no more')).toHaveLength(1)
})

test('A tunnel redials a lost edge router, and hosts its services there again', async () => {
  const { port } = await joined()
  await stage.restartRouter()
  await eventually(() => stage.terminators.size).toBe(1)
  await eventually(() => stage.logged('edge router connected').length).toBe(4)
  const { said } = await opened(port)
  expect(await said('again')).toBe('again')
})

test('A tunnel whose only edge router was offline dials the router at most two polls after a controller lists it again', async () => {
  const { port, client, host } = await joined()
  const listed = client.api.edgeRouters
  // Controllers list no address of a router that is offline.
  for (const { api } of [host, client]) api.edgeRouters = []
  await stage.restartRouter()
  await eventually(() => [host, client].map(({ tunnel }) => tunnel.figures.routers)).toEqual([
    [],
    [],
  ])
  const seen = client.api.asked.length
  for (const { api } of [host, client]) api.edgeRouters = listed
  await eventually(() =>
    [host, client].map(({ tunnel }) => tunnel.figures.routers[0]?.isConnected),
  ).toEqual([true, true])
  const polls = client.api.asked.slice(seen).filter((path) => path.includes('service-updates'))
  expect(polls.length).toBeLessThanOrEqual(2)
  await eventually(() => stage.terminators.size).toBe(1)
  const { said } = await opened(port)
  expect(await said('again')).toBe('again')
})

test('A tunnel opens a new session after its session has ended, and restores its services and its connections to edge routers', async () => {
  const { port, host, client } = await joined()
  for (const { api } of [host, client]) api.faults.push(new SessionEndedError('it is over'))
  await eventually(() => [host.api.sessions, client.api.sessions]).toEqual([2, 2])
  await eventually(() => stage.logged('edge router connected').length).toBe(4)
  await eventually(() => stage.terminators.size).toBe(1)
  const { said } = await opened(port)
  expect(await said('again')).toBe('again')
})

test('A tunnel replaces a service session that an edge router refuses as invalid', async () => {
  const { port, client } = await joined()
  stage.refusedCodes.push(3)
  const { said } = await opened(port)
  expect(await said('hello')).toBe('hello')
  expect(client.api.asked.filter((path) => path === '/sessions')).toHaveLength(2)
})

test('A tunnel closes the connection of a client whose circuit is refused, and logs the reason', async () => {
  const { port } = await joined()
  stage.refusedCodes.push(1)
  const socket = connect({ port, host: '127.0.0.1' })
  await closeOf(socket)
  const [line] = stage.logged('no circuit for a client')
  expect(line?.fields).toMatchObject({
    reason: 'as the test says',
    listener: 'tunnel service name of s1',
  })
})

test('The tunnel that hosts a service logs only once for two connections why it cannot reach the target', async () => {
  const closed = await freePort()
  const port = await freePort()
  const config = { 'host.v1': hostOf(closed) }
  const host = await stage.tunnel('host1', [service('s1', ['Bind'], config)])
  const client = await stage.tunnel(
    'ann',
    [service('s1', ['Dial'])],
    [{ name: 'name of s1', port, protocol: 'tcp' }],
  )
  await host.tunnel.start()
  await client.tunnel.start()
  await eventually(() => stage.terminators.size).toBe(1)
  await eventually(() => stage.logged('service offered').length).toBe(1)
  for (let time = 0; time < 2; time += 1) {
    await closeOf(connect({ port, host: '127.0.0.1' }).on('error', () => undefined))
  }
  const lines = stage.logged('hosted service not reached for a client')
  expect(lines.map(({ fields }) => fields)).toEqual([
    {
      serviceId: 's1',
      service: 'name of s1',
      dialerId: 'ann',
      identityId: 'host1',
      reason: expect.stringContaining(`cannot reach 127.0.0.1:${closed}: `),
    },
  ])
})

test('A circuit that the controller removes ends at both tunnels', async () => {
  const { port, target } = await joined()
  const { socket, said } = await opened(port)
  await said('hello')
  const closed = closeOf(socket)
  stage.unroute(stage.circuits[0] ?? '')
  await closed
  await eventually(() => target.sockets.every(({ destroyed }) => destroyed)).toBe(true)
})

test('A tunnel waits until a controller responds, but stops if a controller refuses the log-in', async () => {
  const { api, tunnel } = await stage.tunnel('ann', [])
  api.faults.push(new Error('ctrl1 refused the connection'))
  await tunnel.start()
  expect(stage.logged('no session; trying again')[0]?.fields).toMatchObject({
    reason: 'ctrl1 refused the connection',
  })
  const other = await stage.tunnel('bob', [])
  other.api.faults.push(new LogInRefusedError('log-in refused: not an enabled identity'))
  await expect(other.tunnel.start()).rejects.toThrow('log-in refused: not an enabled identity')
})

test('A tunnel that stops withdraws its hosted services, closes its ports and ends its session', async () => {
  const { port, host, client } = await joined()
  await host.tunnel.stop()
  await eventually(() => stage.terminators.size).toBe(0)
  await client.tunnel.stop()
  const refused = await once(connect({ port, host: '127.0.0.1' }), 'error')
  expect(String(refused[0])).toContain('ECONNREFUSED')
  expect([host.api.asked.at(-1), client.api.asked.at(-1)]).toEqual(['log-out', 'log-out'])
})
