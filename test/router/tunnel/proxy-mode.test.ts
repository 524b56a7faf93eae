import { createHash, randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'

import { freePort } from '../../support/ports.ts'
import { eventually } from '../support.ts'
import { echoDatagrams, echoServer, member, serviceOf, TunnelStage } from './support.ts'

// Goal: data that enters a port of one tunnel arrives at the target of a hosted service, and
// answers return. Method: a real router with both tunnel modes and real sockets at both ends; the
// test plays its controller.

const closing: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function running(
  events: Parameters<typeof TunnelStage.create>[0],
  options: string,
): Promise<TunnelStage> {
  const stage = await TunnelStage.create(events, options)
  closing.push(() => stage.close())
  return stage
}

/** Sends all data, ends the stream, and reads until the other side ends. */
function exchanged(port: number, data: Uint8Array): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    const parts: Buffer[] = []
    socket.on('data', (part: Buffer) => parts.push(part))
    socket.on('end', () => {
      socket.destroy()
      resolve(Buffer.concat(parts))
    })
    socket.on('error', reject)
    socket.end(data)
  })
}

const sha256 = (data: Uint8Array) => createHash('sha256').update(data).digest('hex')

describe.each([
  ['without encryption', false],
  ['with encryption', true],
])('A TCP service (%s)', (_what, isEncrypted) => {
  test('that a tunneler hosts is reached through a port that the tunneler opens for it', async () => {
    const target = await echoServer()
    closing.push(target.close)
    const port = await freePort()
    const host = { protocol: 'tcp', address: '127.0.0.1', port: target.port }
    const { network, controller } = await running(
      serviceOf('s1', { 'host.v1': host }, ['Bind', 'Dial'], isEncrypted),
      `{mode: proxy, services: ["name of s1:${port}"]}`,
    )
    await controller.terminator('s1')
    await eventually(() => network.logged('service offered').length).toBe(1)
    const data = randomBytes(300_000)
    expect(sha256(await exchanged(port, data))).toBe(sha256(data))
    expect(controller.asked[0]?.serviceName).toBe('name of s1')
    const { 1003: key, 1011: appData } = controller.asked[0]?.peerData ?? {}
    expect(key?.length).toBe(isEncrypted ? 32 : undefined)
    expect(JSON.parse(Buffer.from(appData ?? []).toString())).toEqual({
      dst_protocol: 'tcp',
      dst_ip: '0.0.0.0',
      dst_port: String(port),
    })
  })
})

test('a tunneler that dials and hosts a UDP service carries encrypted datagrams in both directions', async () => {
  const target = await echoDatagrams()
  closing.push(target.close)
  const port = await freePort()
  const host = { protocol: 'udp', address: '127.0.0.1', port: target.port }
  const { network, controller } = await running(
    serviceOf(
      's1',
      { 'host.v1': host, 'proxy.v1': { port, protocols: ['udp'] } },
      ['Bind', 'Dial'],
      true,
    ),
    '{mode: proxy}',
  )
  await controller.terminator('s1')
  await eventually(() => network.logged('service offered').length).toBe(1)
  const client = createSocket('udp4')
  closing.push(() => {
    client.close()
  })
  const answers: string[] = []
  client.on('message', (body) => answers.push(body.toString()))
  client.send('one', port, '127.0.0.1')
  await eventually(() => answers).toEqual(['one'])
  client.send('two', port, '127.0.0.1')
  await eventually(() => answers).toEqual(['one', 'two'])
})

test('getCircuitTimeout limits how long the tunneler waits for a circuit', async () => {
  const port = await freePort()
  const host = { protocol: 'tcp', address: '127.0.0.1', port: 1 }
  const { network, controller } = await running(
    serviceOf('s1', { 'host.v1': host }, ['Bind', 'Dial']),
    `{mode: proxy, services: ["name of s1:${port}"], getCircuitTimeout: 200ms}`,
  )
  controller.makesCircuits = false
  await eventually(() => network.logged('service offered').length).toBe(1)
  const socket = connect({ port, host: '127.0.0.1' }).on('error', () => undefined)
  closing.push(() => {
    socket.destroy()
  })
  socket.resume()
  await eventually(() => socket.destroyed || socket.readableEnded).toBe(true)
  expect(JSON.stringify(network.lines)).toContain('no reply within 200 ms')
})

test('a UDP source that sends nothing for udpIdleTimeout loses its circuit', async () => {
  const target = await echoDatagrams()
  closing.push(target.close)
  const port = await freePort()
  const host = { protocol: 'udp', address: '127.0.0.1', port: target.port }
  const { network, controller } = await running(
    serviceOf('s1', { 'host.v1': host }, ['Bind', 'Dial']),
    `{mode: proxy, services: ["name of s1:${port}:udp"], udpIdleTimeout: 300ms}`,
  )
  await controller.terminator('s1')
  await eventually(() => network.logged('service offered').length).toBe(1)
  const client = createSocket('udp4')
  closing.push(() => {
    client.close()
  })
  const answers: string[] = []
  client.on('message', (body) => answers.push(body.toString()))
  client.send('one', port, '127.0.0.1')
  await eventually(() => answers).toEqual(['one'])
  const ends = () => network.routers[0]?.forwarder.figures()['forwarder.ends']
  await eventually(ends).toBe(0)
  client.send('two', port, '127.0.0.1')
  await eventually(() => answers).toEqual(['one', 'two'])
  expect(controller.asked).toHaveLength(2)
})

test('if its identity may no longer dial a service, a tunneler closes the port and the connections of the service', async () => {
  const target = await echoServer()
  closing.push(target.close)
  const port = await freePort()
  const host = { protocol: 'tcp', address: '127.0.0.1', port: target.port }
  const { network, controller } = await running(
    serviceOf('s1', { 'host.v1': host }, ['Bind', 'Dial']),
    `{mode: proxy, services: ["name of s1:${port}"]}`,
  )
  await controller.terminator('s1')
  await eventually(() => network.logged('service offered').length).toBe(1)
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => undefined)
  const read: string[] = []
  socket.on('data', (part) => read.push(part.toString()))
  socket.write('hello')
  await eventually(() => read.join('')).toBe('hello')
  controller.change([member('Dial', 's1', false)])
  await eventually(() => socket.destroyed || socket.readableEnded).toBe(true)
  await eventually(() => network.logged('service offered no more').length).toBe(1)
  await expect(exchanged(port, Buffer.from('again'))).rejects.toThrow('ECONNREFUSED')
})
