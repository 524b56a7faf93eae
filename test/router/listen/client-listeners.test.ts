import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import { connect as connectTls } from 'node:tls'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { systemClock } from '../../../src/lib/clock.ts'
import {
  issueLeaf,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../../src/pki/authority/authority.ts'
import { terminatorDialers } from '../../../src/router/dial/dialers.ts'
import { TargetSocketLimiter } from '../../../src/overlay/sockets/target-socket-limiter.ts'
import type { RouterIdentity } from '../../../src/router/identity/reloadable-identity.ts'
import { ClientListeners } from '../../../src/router/listen/client-listeners.ts'
import { socketLimits } from '../../../src/overlay/sockets/limits.ts'
import { newCa } from '../../support/authorities.ts'
import { freePort } from '../../support/ports.ts'
import { ALL_DIALERS, configured, connected, dialTo, FarEnd, TestTarget } from '../dial/support.ts'
import { JoinedCircuits } from '../joined-circuits.ts'
import { eventually } from '../support.ts'
import { AskedController } from './support.ts'

// Goal: each connection to a configured port gets a circuit that a controller has created, or is
// closed.

let controllers: AskedController[]
let circuits: JoinedCircuits
let listeners: ClientListeners
let lines: { message: string; fields: Readonly<Record<string, unknown>> }[]
let identity: Partial<RouterIdentity>
let port: number
const open: { destroy?: () => void; close?: () => void }[] = []

beforeEach(async () => {
  controllers = [new AskedController('ctrl1')]
  circuits = new JoinedCircuits()
  lines = []
  identity = { server: null }
  port = await freePort()
})
afterEach(async () => {
  for (const one of open.splice(0)) (one.destroy ?? one.close)?.call(one)
  await listeners.stop()
  for (const controller of controllers) controller.close()
})

async function listen(entry: string): Promise<void> {
  const log = (fields: Readonly<Record<string, unknown>>, message: string): void => {
    lines.push({ message, fields })
  }
  listeners = new ClientListeners({
    config: configured(`listeners: [${entry}]`).listeners,
    handshakeTimeoutMs: 5000,
    circuits,
    connections: () => controllers.map(({ connection }) => connection),
    identity: () => identity as RouterIdentity,
    clock: systemClock,
    log: { info: log, warn: log, error: log },
  })
  await listeners.start()
}

const entry = (binding: string, protocol: string, more = ''): string =>
  `{binding: ${binding}, address: "${protocol}:127.0.0.1:${port}", advertise: "r.test:${port}"${more}}`
const proxy = (protocol = 'tcp') => listen(entry('proxy', protocol, ', service: web'))
const proxyUdp = () => listen(entry('proxy_udp', 'udp', ', service: dns'))
const refusals = () => lines.filter(({ message }) => message === 'no circuit for a client')

async function client(): Promise<{ socket: Socket; heard: () => string }> {
  const socket = await connected(port)
  let heard = ''
  socket.on('data', (chunk: Buffer) => (heard += chunk.toString()))
  open.push(socket)
  return { socket, heard: () => heard }
}

async function udpClient(): Promise<{ socket: DatagramSocket; heard: string[] }> {
  const socket = createSocket('udp4')
  const heard: string[] = []
  socket.on('message', (body) => heard.push(body.toString()))
  await new Promise<void>((done) => socket.connect(port, '127.0.0.1', done))
  open.push(socket)
  return { socket, heard }
}

describe('A proxy listener', () => {
  test('creates a circuit to its service for each connection', async () => {
    await proxy()
    const [one, two] = [await client(), await client()]
    one.socket.write('from one')
    two.socket.write('from two')
    await eventually(() => circuits.ends.size).toBe(2)
    expect(controllers[0]?.asked.map(({ service }) => service)).toEqual(['web', 'web'])
    const [a, b] = [new FarEnd(circuits, 'circuit 1'), new FarEnd(circuits, 'circuit 2')]
    await eventually(() => [a.text, b.text].sort()).toEqual(['from one', 'from two'])
    a.send('hello')
    await eventually(() => [one.heard(), two.heard()].sort()).toEqual(['', 'hello'])
  })

  test('closes the two directions of a connection separately', async () => {
    await proxy()
    const { socket, heard } = await client()
    socket.end('a question')
    await eventually(() => circuits.ends.size).toBe(1)
    const far = new FarEnd(circuits, 'circuit 1')
    await eventually(() => far.isFinished).toBe(true)
    far.send('an answer')
    far.end.finish()
    await eventually(() => [heard(), socket.readableEnded]).toEqual(['an answer', true])
    await eventually(() => far.closedFor).not.toBeNull()
  })

  test('closes a connection for which a controller creates no circuit, and logs this once', async () => {
    await proxy()
    const [controller] = controllers
    if (controller !== undefined) controller.refusal = 'no such service'
    for (let k = 0; k < 3; k += 1) {
      const { socket } = await client()
      await eventually(() => socket.destroyed || socket.readableEnded).toBe(true)
    }
    expect(refusals().map(({ fields }) => fields['reason'])).toEqual(['no such service'])
    expect(circuits.ends.size).toBe(0)
  })

  test('requests the circuit from another controller if the first one disconnects, but not if the first one refuses', async () => {
    const other = new AskedController('ctrl2')
    controllers.push(other)
    const [first] = controllers
    if (first === undefined) return
    await eventually(() =>
      controllers.every(({ connection }) => !connection.channel.isClosed),
    ).toBe(true)
    for (const one of controllers) one.isSilent = true
    await proxy()
    const { socket } = await client()
    await eventually(() => first.asked.length + other.asked.length).toBe(1)
    const [asked, idle] = first.asked.length === 1 ? [first, other] : [other, first]
    idle.isSilent = false
    asked.close()
    await eventually(() => circuits.ends.size).toBe(1)
    expect(idle.asked).toHaveLength(1)
    const third = new AskedController('ctrl3')
    controllers.push(third)
    await eventually(() => third.connection.channel.isClosed).toBe(false)
    for (const one of [idle, third]) one.refusal = 'enough'
    const refused = await client()
    await eventually(() => refused.socket.readableEnded || refused.socket.destroyed).toBe(true)
    expect(idle.asked.length + third.asked.length).toBe(2)
    expect(socket.destroyed).toBe(false)
  })

  test('stops waiting for a circuit after getCircuitTimeout', async () => {
    const [controller] = controllers
    if (controller !== undefined) controller.isSilent = true
    await listen(entry('proxy', 'tcp', ', service: web, options: {getCircuitTimeout: 200ms}'))
    const { socket } = await client()
    await eventually(() => controller?.asked.length).toBe(1)
    await eventually(() => socket.readableEnded || socket.destroyed).toBe(true)
    expect(refusals()[0]?.fields['reason']).toMatch(/no reply within 200 ms/)
  })

  test('ends the circuit of a client that disconnects before the circuit is complete', async () => {
    await proxy()
    const [controller] = controllers
    if (controller !== undefined) controller.isSilent = true
    const { socket } = await client()
    await eventually(() => controller?.asked.length).toBe(1)
    socket.resetAndDestroy()
    await eventually(() => socket.closed).toBe(true)
    controller?.answerLast()
    await eventually(() => circuits.ends.size).toBe(1)
    const far = new FarEnd(circuits, 'circuit 1')
    await eventually(() => far.closedFor).not.toBeNull()
  })

  test('ends circuits when the router stops', async () => {
    await proxy()
    const { socket } = await client()
    await eventually(() => circuits.ends.size).toBe(1)
    const far = new FarEnd(circuits, 'circuit 1')
    await listeners.stop()
    await eventually(() => far.closedFor).not.toBeNull()
    await eventually(() => socket.destroyed || socket.readableEnded).toBe(true)
  })

  test('uses TLS with the server certificate of the router', async () => {
    const root = await newCa('network root', Date.now())
    const leaf = await issueLeaf({
      issuer: root,
      commonName: 'router1',
      uris: [],
      hosts: ['127.0.0.1'],
      usages: ['server'],
      validity: validityStartingAt(Date.now(), LEAF_LIFETIME_MS),
    })
    await expect(proxy('tls')).rejects.toThrow(/listeners\[0\]: .* needs a server certificate/)
    identity = { server: { ...leaf, leaf: undefined as never } }
    await proxy('tls')
    const socket = connectTls({ port, host: '127.0.0.1', ca: root.certificatePem })
    open.push(socket)
    socket.write('secret')
    await eventually(() => circuits.ends.size).toBe(1)
    const far = new FarEnd(circuits, 'circuit 1')
    await eventually(() => far.text).toBe('secret')
  })
})

describe('A listener with the binding transport', () => {
  const transport = () => listen(entry('transport', 'tcp'))

  test('reads the service name from the first line, and sends a response line before the data of the circuit', async () => {
    await transport()
    const { socket, heard } = await client()
    socket.write('{"id":"me","svc')
    socket.write('Id":"web"}\nfirst bytes')
    await eventually(() => circuits.ends.size).toBe(1)
    expect(controllers[0]?.asked).toMatchObject([{ ingressId: 'me', service: 'web' }])
    const far = new FarEnd(circuits, 'circuit 1')
    await eventually(() => far.text).toBe('first bytes')
    far.send('answer')
    await eventually(heard).toBe('{"scc":true,"msg":"","circuitId":"circuit 1"}\nanswer')
  })

  test('reports the reason if a circuit is refused, and closes the connection', async () => {
    await transport()
    const [controller] = controllers
    if (controller !== undefined) controller.refusal = 'no such service'
    const { socket, heard } = await client()
    socket.write('{"svcId":"x"}\n')
    await eventually(() => socket.readableEnded).toBe(true)
    expect(heard()).toBe('{"scc":false,"msg":"no such service","circuitId":""}\n')
  })

  test.each([
    ['a line that is not JSON', 'GET / HTTP/1.1\r\n'],
    ['a line without a service', '{"id":"me"}\n'],
    ['a service that is not a string', '{"svcId":7}\n'],
    ['a line that never ends', 'x'.repeat(socketLimits.requestLineBytesMax + 1)],
    ['a line that is too long', `{"svcId":"${'x'.repeat(socketLimits.requestLineBytesMax)}"}\n`],
  ])('closes a connection that begins with %s, without requesting a circuit', async (_, line) => {
    await transport()
    const { socket, heard } = await client()
    socket.write(line)
    await eventually(() => socket.readableEnded).toBe(true)
    expect(heard()).toMatch(/"scc":false/)
    expect(controllers[0]?.asked).toEqual([])
  })
})

describe('A UDP listener', () => {
  test('creates a circuit for each source, queues datagrams until the circuit is complete, and returns replies to the right source', async () => {
    await proxyUdp()
    const one = await udpClient()
    for (const text of ['a', 'b', 'c']) one.socket.send(text)
    await eventually(() => circuits.ends.size).toBe(1)
    const far = new FarEnd(circuits, 'circuit 1')
    await eventually(() => far.text).toBe('abc')
    expect(far.sizes).toEqual([1, 1, 1])
    const two = await udpClient()
    two.socket.send('other')
    await eventually(() => circuits.ends.size).toBe(2)
    far.send('to one')
    await eventually(() => one.heard).toEqual(['to one'])
    expect(two.heard).toEqual([])
    expect(controllers[0]?.asked.map(({ service }) => service)).toEqual(['dns', 'dns'])
  })

  test('forgets a source whose circuit has ended, and requests a new circuit for the source’s next datagram', async () => {
    await proxyUdp()
    const { socket } = await udpClient()
    socket.send('a')
    await eventually(() => circuits.ends.size).toBe(1)
    const far = new FarEnd(circuits, 'circuit 1')
    far.end.close('over')
    await eventually(() => far.closedFor).toBe('over')
    await eventually(() => {
      socket.send('b')
      return circuits.ends.size
    }).toBe(2)
  })

  test('does not request a circuit for every datagram from a source for which a circuit was refused', async () => {
    await proxyUdp()
    const [controller] = controllers
    if (controller !== undefined) controller.refusal = 'no'
    const { socket } = await udpClient()
    socket.send('a')
    await eventually(() => refusals().length).toBe(1)
    const echo = await udpClient()
    for (let k = 0; k < 50; k += 1) socket.send('again')
    echo.socket.send('later')
    await eventually(() => controller?.asked.length).toBe(2)
  })

  test('with the binding transport_udp reads the service name from the first datagram', async () => {
    await listen(entry('transport_udp', 'udp'))
    const { socket, heard } = await udpClient()
    socket.send('{"id":"me","svcId":"dns"}')
    await eventually(() => heard).toEqual(['{"scc":true,"msg":"","circuitId":"circuit 1"}\n'])
    socket.send('question')
    const far = new FarEnd(circuits, 'circuit 1')
    await eventually(() => far.text).toBe('question')
    const other = await udpClient()
    other.socket.send('nonsense')
    await eventually(() => other.heard).toMatchObject([expect.stringMatching(/"scc":false/)])
    expect(controllers[0]?.asked).toHaveLength(1)
  })
})

test('A listener whose port is in use prevents the start of the router, and the error contains the configuration key of the listener', async () => {
  const target = await TestTarget.open()
  port = target.port
  await expect(proxy()).rejects.toThrow(/listeners\[0\]\.bind: cannot listen on tcp:.*EADDRINUSE/)
  await target.close()
})

test.each([
  ['proxy', 'ws', ', service: web'],
  ['transport_udp', 'tcp', ''],
])(
  'A listener with the binding %s at a %s address prevents the start of the router',
  async (binding, protocol, more) => {
    await expect(listen(entry(binding, protocol, more))).rejects.toThrow(/listens on/)
  },
)

test('A router does not dial a target that is a listener of this router', async () => {
  await proxy()
  const { ports } = listeners
  const dialers = terminatorDialers({
    config: configured(ALL_DIALERS).dialers,
    circuits,
    caPem: () => '',
    ownPorts: () => ports,
    sockets: new TargetSocketLimiter(),
  })
  const dialed = dialers
    .get('transport')
    ?.dial(dialTo(`tcp:127.0.0.1:${port}`), new AbortController().signal)
  await expect(dialed).rejects.toMatchObject({ code: 7 })
})
