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

test('Routers and HTTP clients use one port, with and without application protocols', async () => {
  expect(await shared.connectsRouter(await memberLeaf('er1'))).toBe(true)
  expect(await shared.status()).toBe(200)
  expect(await shared.status({ ALPNProtocols: ['h2', 'http/1.1'] })).toBe(200)
  expect(await shared.status({ ALPNProtocols: [] })).toBe(200)
})

test('A client that offers only other protocols gets no connection', async () => {
  const socket = await shared.handshake({ ALPNProtocols: ['h2'] })
  expect([socket.destroyed, socket.authorized]).toEqual([true, false])
})

test('Requests in progress are answered while the port closes, and idle connections end', async () => {
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

test('Routers cannot connect after their listener has closed, and clients can', async () => {
  const leaf = await memberLeaf('er1')
  await shared.closeRouters()
  expect(await shared.connectsRouter(leaf)).toBe(false)
  expect(await shared.status()).toBe(200)
})

test('The port closes while a connection has sent nothing', async () => {
  const silent = shared.plain()
  await once(silent, 'connect')
  await shared.closeRouters()
  await shared.closeListeners()
  await eventually(() => silent.destroyed).toBe(true)
})
