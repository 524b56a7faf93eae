import { afterEach, beforeEach, expect, test } from 'vitest'

import { SharedPort } from '../controller/shared-port.ts'
import { eventually } from '../router/support.ts'
import { memberLeaf } from '../support/member-leaf.ts'

// The attack: at the port that a controller shares between routers and HTTP clients, a caller offers the protocol of one side and
// speaks that of the other, to reach it with the checks of the first.

let shared: SharedPort
beforeEach(async () => {
  shared = await SharedPort.open()
})
afterEach(() => shared.close())

const REQUEST = 'GET /edge/client/v1/version HTTP/1.1\r\nHost: localhost\r\n\r\n'

test.each([
  ['ziti-ctrl', ['ziti-ctrl']],
  ['ziti-ctrl after http/1.1', ['http/1.1', 'ziti-ctrl']],
])('A caller that offers %s gets no HTTP answer', async (_, protocols) => {
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
])('A router that offers %s gets no channel', async (_, protocols) => {
  // HTTP answers the hello with 400, or closes the connection.
  await shared.connectsRouter(await memberLeaf('er1'), protocols)
  expect([...shared.stage.channels.connections()]).toEqual([])
})
