import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { connect } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { findListenFault } from '../../src/controller/start/check-listeners.ts'
import { clientHelloBytes, OnePort } from './one-port-support.ts'
import { webSocketStream } from './edge/support.ts'
import { freePort } from '../support/ports.ts'
import { eventually, TestNetwork } from './support.ts'

// Goal: links and clients share a port, and each behaves as on a separate port. Method: a real
// router, with connections that offer the protocols that routers and clients of OpenZiti offer.

test('One port serves links, clients, and clients in a browser, depending on the ALPN protocol that each offers', async () => {
  const router = await OnePort.open('', 'browsers')
  try {
    const [link, client] = [await router.linked(), await router.client('ann')]
    const browser = await router.client('ben', { through: webSocketStream })
    expect([link.destroyed, client.isAdmitted, browser.isAdmitted]).toEqual([false, true, true])
    const bare = await router.client('cid', { protocols: null })
    expect(bare.isAdmitted).toBe(true)
  } finally {
    await router.close()
  }
})

describe('One port for links and clients', () => {
  let router: OnePort
  beforeEach(async () => {
    router = await OnePort.open()
  })
  afterEach(() => router.close())

  test('admits a router that offers ziti-link, and a client that offers ziti-edge', async () => {
    const [link, client] = [await router.linked(), await router.client('ann')]
    expect([link.alpnProtocol, client.socket.alpnProtocol]).toEqual(['ziti-link', 'ziti-edge'])
    expect([link.destroyed, client.isAdmitted]).toEqual([false, true])
    expect(router.network.logged('listening for').map(({ message }) => message)).toEqual([
      'listening for links',
      'listening for clients',
    ])
  })

  test('serves a client that offers no ALPN protocol as an edge client', async () => {
    const client = await router.client('ann', { protocols: null })
    expect([client.socket.alpnProtocol, client.isAdmitted]).toEqual([false, true])
  })

  test.each([
    [['ziti-edge', 'ziti-link'], 'ziti-link'],
    [['ziti-link', 'ziti-edge'], 'ziti-edge'],
    [['h2', 'ziti-edge', 'other'], 'ziti-edge'],
  ])(
    'selects, among the protocols %j that a client offers, the last one that the port serves',
    async (protocols, selected) => {
      const socket = await router.handshake({ protocols })
      expect(socket.alpnProtocol).toBe(selected)
    },
  )

  test('closes the connection of a client that offers only ALPN protocols that the port does not serve', async () => {
    const socket = await router.handshake({ protocols: ['h2', 'ziti-ctrl'] })
    await eventually(() => socket.destroyed).toBe(true)
    expect(socket.authorized).toBe(false)
  })

  test.each([
    ['one byte at a time', 1],
    ['in two parts', 100],
  ])('reads a ClientHello that arrives %s', async (_, size) => {
    const bytes = await clientHelloBytes(['ziti-edge'])
    const socket = router.kept(connectTcp({ host: '127.0.0.1', port: router.port, noDelay: true }))
    const answered = once(socket, 'data')
    const parts = size === 1 ? bytes.length : 2
    for (let at = 0; at < parts; at += 1) {
      const isLast = at === parts - 1
      socket.write(bytes.subarray(at * size, isLast ? undefined : (at + 1) * size))
      await new Promise((done) => setImmediate(done))
    }
    const [answer] = (await answered) as [Buffer]
    // A TLS handshake record: the ServerHello.
    expect(answer[0]).toBe(22)
  })

  test('closes a connection that does not speak TLS', async () => {
    const socket = router.kept(connectTcp(router.port, '127.0.0.1'))
    socket.write('GET / HTTP/1.1\r\n\r\n')
    await eventually(() => socket.destroyed).toBe(true)
  })

  test('can be bound again after the router has stopped, even if a connection had sent no ClientHello', async () => {
    const idle = router.kept(connectTcp(router.port, '127.0.0.1'))
    await once(idle, 'connect')
    await router.linked()
    await router.client('ann')
    await router.network.closeRouters()
    expect(await findListenFault(`127.0.0.1:${router.port}`)).toBeNull()
    await eventually(() => idle.destroyed).toBe(true)
  })
})

test('A port that serves only links accepts a router that offers no ALPN protocol', async () => {
  const router = await OnePort.open('', 'links')
  const socket = await router.linked('127.0.0.1', null)
  expect([socket.alpnProtocol, socket.destroyed]).toEqual([false, false])
  await router.close()
})

test('A client’s web socket and a link can use the same port', async () => {
  const network = await TestNetwork.create()
  const controller = await network.controller('a')
  const port = await freePort()
  const advertise = `advertise: "127.0.0.1:${port}"`
  await network.running(
    [controller.address],
    `edge: {}
link: {listeners: [{binding: transport, bind: "tls:127.0.0.1:${port}", ${advertise}}]}
listeners: [{binding: edge, bind: "wss:127.0.0.1:${port}", ${advertise}}]`,
  )
  const { certificatePem: cert, privateKeyPem: key } = await network.leaf('router2', [], [])
  const chosen = async (ALPNProtocols: string[] | null): Promise<unknown> => {
    const ca = network.root.certificatePem
    const offered = ALPNProtocols === null ? {} : { ALPNProtocols }
    const socket = connect({ host: '127.0.0.1', port, cert, key, ca, ...offered })
    socket.on('error', () => undefined)
    await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')]).catch(() => null)
    socket.destroy()
    return socket.alpnProtocol
  }
  expect(await chosen(['http/1.1'])).toBe('http/1.1')
  expect(await chosen(['ziti-link'])).toBe('ziti-link')
  expect(await chosen(null), 'a client without protocols reaches the web sockets').toBe(false)
  await network.close()
})
