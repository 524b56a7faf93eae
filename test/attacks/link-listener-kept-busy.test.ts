import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, test } from 'vitest'

import { encodeFrame } from '../../src/channel/frame.ts'
import { linkHelloMessage } from '../../src/channel/messages/links.ts'
import { linkLimits } from '../../src/router/links/limits.ts'
import { eventually, type ScriptedController, TestNetwork } from '../router/support.ts'
import { freePort } from '../support/ports.ts'

// The attack: silent connections to the link listener of a router use all its slots, so that other
// routers get no link. Anybody can open a connection and leave its handshake incomplete; a thief of
// a router's key can also complete the handshake.

let network: TestNetwork
let controller: ScriptedController
let port: number
const sockets: Socket[] = []
beforeEach(async () => {
  network = await TestNetwork.create()
  controller = await network.controller('a')
  port = await freePort()
  const listener = `{binding: transport, bind: "tls:127.0.0.1:${port}", advertise: "127.0.0.1:${port}", options: {connectTimeout: 60s}}`
  // All timeouts are longer than the test, so only the limits of connections close one.
  const more = `link: {listeners: [${listener}]}\ntls: {handshakeTimeout: 60s}\n`
  await network.running([controller.address], more)
  await eventually(() => controller.isConnected).toBe(true)
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await network.close()
})

function idle(localAddress: string): Socket {
  const socket = connectTcp({ host: '127.0.0.1', port, localAddress }).resume()
  socket.on('error', () => undefined)
  sockets.push(socket)
  return socket
}

async function handshake(holder: string, localAddress: string): Promise<TLSSocket> {
  const { certificatePem: cert, privateKeyPem: key } = await leafOf(holder)
  const ca = network.root.certificatePem
  const own: object = { localAddress }
  const socket = connectTls({ host: '127.0.0.1', port, cert, key, ca, ALPNProtocols, ...own })
  socket.on('error', () => undefined)
  sockets.push(socket.resume())
  await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')])
  return socket
}
const ALPNProtocols = ['ziti-link']

const leaves = new Map<string, ReturnType<TestNetwork['leaf']>>()
function leafOf(holder: string): ReturnType<TestNetwork['leaf']> {
  const known = leaves.get(holder) ?? network.leaf(holder, [], [])
  leaves.set(holder, known)
  return known
}

const held = (some: readonly Socket[]): number => some.filter((each) => !each.destroyed).length

/** Expects that an honest router can open a link, regardless of other open connections. */
async function linkOfAnotherRouter(localAddress: string): Promise<void> {
  const before = network.logged('link established').length
  const socket = await handshake('router2', localAddress)
  const ids = { linkId: 'of router2', routerId: 'router2', dialedId: 'router1' }
  socket.write(encodeFrame(linkHelloMessage({ ...ids, dialedVersion: 'v2.0.0', iteration: 1 })))
  await eventually(() => network.logged('link established').length).toBe(before + 1)
}

beforeEach(() => leaves.clear())

test('One source can have a limited number of pending handshakes at a link listener, and a router at the same address can still link', async () => {
  const some = Array.from({ length: 3 * linkLimits.linkHandshakesPerSourceMax }, () =>
    idle('127.0.0.2'),
  )
  await eventually(() => held(some)).toBeLessThanOrEqual(linkLimits.linkHandshakesPerSourceMax)
  await linkOfAnotherRouter('127.0.0.2')
})

test('Many sources together can have a limited number of pending handshakes at a link listener', async () => {
  const sources = Array.from({ length: 24 }, (_, at) => `127.0.1.${at + 1}`)
  const some = sources.flatMap((source) => Array.from({ length: 20 }, () => idle(source)))
  await eventually(() => held(some)).toBeLessThanOrEqual(linkLimits.linkHandshakesMax)
  await linkOfAnotherRouter('127.0.0.3')
})

test('The holder of one certificate can have a limited number of link connections that have not sent their hello', async () => {
  const count = 3 * linkLimits.linksWaitingPerCertificateMax
  const some: Socket[] = []
  for (let at = 0; at < count; at += 1) some.push(await handshake('router3', `127.0.2.${at + 1}`))
  await eventually(() => held(some)).toBeLessThanOrEqual(linkLimits.linksWaitingPerCertificateMax)
  await linkOfAnotherRouter('127.0.0.4')
})
