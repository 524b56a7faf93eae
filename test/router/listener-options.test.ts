import { connect as connectTcp, type Socket } from 'node:net'
import { request } from 'node:https'
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { writeFileSync } from 'node:fs'

import { parseCertificate } from '../../src/pki/certificate.ts'
import { freePort } from '../support/ports.ts'
import { eventually, type ScriptedController, TestNetwork } from './support.ts'

// Goal: the options of a router's listeners limit connections as documented. Method: a real router
// with the option; the test opens the connections. Where the default would end a connection as
// well, the shortest of several attempts is far shorter than the default, even on a busy machine.

let network: TestNetwork
let controller: ScriptedController
let port: number
const sockets: Socket[] = []
beforeEach(async () => {
  network = await TestNetwork.create()
  controller = await network.controller('a')
  port = await freePort()
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await network.close()
})

function kept<T extends Socket>(socket: T): T {
  sockets.push(socket)
  socket.on('error', () => undefined)
  return socket
}

const ATTEMPTS = 3

/**
 * The shortest of several attempts: the time between opening the connection and its close, in ms.
 */
async function closedAfterMs(
  open: () => Socket,
  onOpen: (socket: Socket) => void = () => undefined,
): Promise<number> {
  const times: number[] = []
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const socket = kept(open())
    const { promise, resolve } = Promise.withResolvers<void>()
    socket.once('close', () => resolve())
    socket.once('error', () => resolve())
    await new Promise<void>((done) => socket.once('ready', done))
    const fromMs = performance.now()
    onOpen(socket)
    socket.resume()
    await promise
    times.push(performance.now() - fromMs)
  }
  return Math.min(...times)
}

describe('The option tls.handshakeTimeout limits how long a TLS handshake may take', () => {
  const address = (protocol: string) =>
    `bind: "${protocol}:127.0.0.1:${port}", advertise: "127.0.0.1:${port}"`

  test.each([
    ['links', () => `link: {listeners: [{binding: transport, ${address('tls')}}]}`],
    ['clients', () => `edge: {}\nlisteners: [{binding: edge, ${address('tls')}}]`],
    ['a proxy', () => `listeners: [{binding: proxy, ${address('tls')}, service: web}]`],
  ])('at a listener for %s', async (_, sections) => {
    await network.running([controller.address], `tls: {handshakeTimeout: 200ms}\n${sections()}\n`)
    const afterMs = await closedAfterMs(() => connectTcp(port, '127.0.0.1'))
    expect(afterMs).toBeLessThan(4000)
  })
})

test.each(['connectTimeout: 100ms', 'connectTimeoutMs: 100'])(
  'the listener option %s limits how long a router waits for a client’s hello',
  async (option) => {
    const place = `bind: "tls:127.0.0.1:${port}", advertise: "127.0.0.1:${port}"`
    const listener = `{binding: edge, ${place}, options: {${option}}}`
    await network.running([controller.address], `edge: {}\nlisteners: [${listener}]\n`)
    const afterMs = await closedAfterMs(() =>
      connect({ port, host: '127.0.0.1', ALPNProtocols: ['ziti-edge'], rejectUnauthorized: false }),
    )
    expect(afterMs).toBeLessThan(4000)
  },
)

describe('A web server of a router', () => {
  async function serve(options: string, more = ''): Promise<void> {
    const points = `bindPoints: [{interface: "127.0.0.1:${port}", address: "r.test:${port}"}]`
    const apis = 'apis: [{binding: health-checks}]'
    const checks =
      'healthChecks: {ctrlPingCheck: {initialDelay: 0s, interval: 100ms, timeout: 200ms}}'
    await network.running(
      [controller.address],
      `${checks}\nweb: [{name: checks of r, ${points}, ${apis}, options: {${options}}${more}}]\n`,
    )
  }

  const open = (options: ConnectionOptions = {}): TLSSocket =>
    connect({ port, host: '127.0.0.1', ca: network.root.certificatePem, ...options })
  const REQUEST = 'GET /health-checks HTTP/1.1\r\nHost: r.test\r\n\r\n'

  test('is named in the log', async () => {
    await serve('')
    expect(network.logged('monitoring server listens')[0]?.fields).toMatchObject({
      name: 'checks of r',
    })
  })

  test('closes a connection on which no complete request arrives within readTimeout', async () => {
    await serve('readTimeout: 100ms')
    expect(
      await closedAfterMs(
        () => open(),
        (socket) => socket.write('GET / HTTP/1.1\r\n'),
      ),
    ).toBeLessThan(4500)
  })

  test('closes a connection on which no further request arrives within idleTimeout', async () => {
    await serve('idleTimeout: 100ms')
    expect(
      await closedAfterMs(
        () => open(),
        (socket) => socket.write(REQUEST),
      ),
    ).toBeLessThan(4500)
  })

  test('closes a connection whose client does not read the response within writeTimeout', async () => {
    await serve('readTimeout: 1h, writeTimeout: 100ms')
    const socket = kept(open())
    await new Promise<void>((done) => socket.once('secureConnect', done))
    // The unread answers are larger than the system buffers.
    const timer = setInterval(() => {
      if (socket.writableLength === 0) socket.write(REQUEST.repeat(500))
    }, 5)
    await eventually(() => socket.destroyed || socket.errored !== null).toBe(true)
    clearInterval(timer)
  })

  test('accepts no TLS version below minTLSVersion or above maxTLSVersion', async () => {
    await serve('minTLSVersion: TLS1.3')
    const refused = await new Promise<string>((done) => {
      const socket = kept(open({ maxVersion: 'TLSv1.2' }))
      socket.once('secureConnect', () => done('it was spoken'))
      socket.once('error', ({ message }) => done(message))
    })
    expect(refused).toMatch(/protocol version|alert/)
    await network.closeRouters()
    await serve('maxTLSVersion: TLS1.2')
    const socket = kept(open())
    await new Promise<void>((done) => socket.once('secureConnect', done))
    expect(socket.getProtocol()).toBe('TLSv1.2')
  })

  test('presents the certificate in its own identity section', async () => {
    const { certificatePem, privateKeyPem } = await network.leaf('web of r', [], ['127.0.0.1'])
    writeFileSync(network.path('web.cert'), certificatePem, { mode: 0o600 })
    writeFileSync(network.path('web.key'), privateKeyPem, { mode: 0o600 })
    await serve('', ', identity: {cert: r.cert, server_cert: web.cert, key: web.key, ca: r.ca}')
    const socket = kept(open())
    await new Promise<void>((done) => socket.once('secureConnect', done))
    const shown = socket.getPeerX509Certificate()
    expect(
      shown === undefined ? null : parseCertificate(Uint8Array.from(shown.raw)).commonName,
    ).toBe('web of r')
  })

  test('reports that no controller responded to a ping within ctrlPingCheck.timeout', async () => {
    controller.answersPings = false
    await serve('')
    const answer = (): Promise<string> =>
      new Promise((done, fail) => {
        const ca = network.root.certificatePem
        const asked = request(
          { host: '127.0.0.1', port, path: '/', ca, agent: false },
          (message) => {
            let text = ''
            message.on('data', (part: Buffer) => (text += part.toString()))
            message.on('end', () => done(text))
          },
        )
        asked.on('error', fail)
        asked.end()
      })
    await eventually(answer).toContain('no controller of 1 answered within 200 ms')
  })
})
