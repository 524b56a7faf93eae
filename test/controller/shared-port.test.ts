import { once } from 'node:events'
import { Agent } from 'node:https'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { eventually } from '../router/support.ts'
import { memberLeaf } from '../support/member-leaf.ts'
import { SharedPort } from './shared-port.ts'

let shared: SharedPort
beforeEach(async () => {
  shared = await SharedPort.open()
})
afterEach(() => shared.close())

test('Routers and HTTP clients can share one port, with or without ALPN protocols', async () => {
  expect(await shared.connectsRouter(await memberLeaf('er1'))).toBe(true)
  expect(await shared.status()).toBe(200)
  expect(await shared.status({ ALPNProtocols: ['h2', 'http/1.1'] })).toBe(200)
  expect(await shared.status({ ALPNProtocols: [] })).toBe(200)
})

test('A client that offers a shared port only ALPN protocols that the port does not support gets no connection', async () => {
  const socket = await shared.handshake({ ALPNProtocols: ['h2'] })
  expect([socket.destroyed, socket.authorized]).toEqual([true, false])
})

test('A shared port answers a request on an open connection while it closes, and accepts no connection afterwards', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  expect(await shared.status({ agent })).toBe(200)
  await shared.closeRouters()
  const closed = shared.closeListeners()
  expect(await shared.status({ agent })).toBe(200)
  await closed
  agent.destroy()
  const late = shared.plain()
  await eventually(() => late.destroyed).toBe(true)
})

test('An idle connection does not delay the closing of the shared port', async () => {
  await shared.close()
  shared = await SharedPort.open({ keepAliveTimeoutMs: 600_000 })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  expect(await shared.status({ agent })).toBe(200)
  await shared.closeRouters()
  await shared.closeListeners()
  agent.destroy()
})

test('At a shared port, routers cannot connect after the router listener has closed, but clients can', async () => {
  const leaf = await memberLeaf('er1')
  await shared.closeRouters()
  expect(await shared.connectsRouter(leaf)).toBe(false)
  expect(await shared.status()).toBe(200)
})

test('A shared port closes even if a connection has sent nothing', async () => {
  const silent = shared.plain()
  await once(silent, 'connect')
  await shared.closeRouters()
  await shared.closeListeners()
  await eventually(() => silent.destroyed).toBe(true)
})

const REQUEST = 'GET /edge/client/v1/version HTTP/1.1\r\nHost: localhost\r\n\r\n'

test.each([
  ['ziti-ctrl', ['ziti-ctrl']],
  ['ziti-ctrl after http/1.1', ['http/1.1', 'ziti-ctrl']],
])('A caller at a shared port that offers %s gets no HTTP response', async (_, protocols) => {
  const { certificatePem: cert, privateKeyPem: key } = await memberLeaf('er1')
  const socket = await shared.handshake({ cert, key, ALPNProtocols: protocols })
  expect(socket.alpnProtocol).toBe('ziti-ctrl')
  let answer = ''
  socket.on('data', (bytes: Buffer) => (answer += bytes.toString('latin1')))
  socket.write(REQUEST)
  await eventually(() => socket.destroyed).toBe(true)
  expect(answer).not.toContain('HTTP/1.1')
})

test.each([
  ['http/1.1', ['http/1.1']],
  ['http/1.1 after ziti-ctrl', ['ziti-ctrl', 'http/1.1']],
  ['no protocol', []],
])('A router at a shared port that offers %s gets no control channel', async (_, protocols) => {
  // HTTP responds to the hello with 400, or closes the connection.
  await shared.connectsRouter(await memberLeaf('er1'), protocols)
  expect([...shared.stage.channels.connections()]).toEqual([])
})
