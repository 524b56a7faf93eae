import { connect } from 'node:net'
import { createSocket } from 'node:dgram'
import { afterEach, describe, expect, test } from 'vitest'

import { systemClock } from '../../src/lib/clock.ts'
import { terminatorDialers } from '../../src/router/dial/dialers.ts'
import { TargetSocketLimiter } from '../../src/overlay/sockets/target-socket-limiter.ts'
import type {
  CircuitApplication,
  CircuitEndpoint,
  LocalCircuit,
} from '../../src/overlay/circuits/circuit-endpoint.ts'
import type { RouterIdentity } from '../../src/router/identity/reloadable-identity.ts'
import { ClientListeners } from '../../src/router/listen/client-listeners.ts'
import { freePort } from '../support/ports.ts'
import { configured, dialTo, TestTarget } from './dial/support.ts'
import { JoinedCircuits } from './joined-circuits.ts'
import { AskedController } from './listen/support.ts'
import { eventually } from './support.ts'
import { echoServer, serviceOf, TunnelStage } from './tunnel/support.ts'

// Goal: the `options` of a dialer, a listener or a tunnel apply to the ends of its circuits.
// Method: each has an option that differs from its default; the test reads the options of the
// opened ends.

/** Joins ends in memory, and records the options with which each was opened. */
class SeenCircuits extends JoinedCircuits {
  readonly opened: LocalCircuit[] = []

  override open(circuit: LocalCircuit, application: CircuitApplication): CircuitEndpoint {
    this.opened.push(circuit)
    return super.open(circuit, application)
  }
}

const given = 'options: {rxBufferSize: 65536}'
const expected = { rxBufferSize: 65_536, txPortalMinSize: 16_384 }
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

describe('The configured options determine the circuit endpoint', () => {
  test.each(['transport', 'transport_udp'])('in a dialer with the binding %s', async (binding) => {
    const circuits = new SeenCircuits()
    const target = await TestTarget.open()
    closing.push(() => target.close())
    const dialer = terminatorDialers({
      config: configured(`dialers: [{binding: ${binding}, ${given}}]`).dialers,
      circuits,
      caPem: () => '',
      ownPorts: () => new Set(),
      sockets: new TargetSocketLimiter(),
    }).get(binding)
    const address = binding === 'transport' ? target.address : `udp:127.0.0.1:${target.port}`
    await dialer?.dial(dialTo(address), new AbortController().signal)
    expect(circuits.opened[0]?.options).toMatchObject(expected)
  })

  test.each([
    ['transport', 'tcp'],
    ['proxy', 'tcp'],
    ['transport_udp', 'udp'],
    ['proxy_udp', 'udp'],
  ])('in a listener with the binding %s', async (binding, protocol) => {
    const circuits = new SeenCircuits()
    const controller = new AskedController('ctrl1')
    const port = await freePort()
    const address = `address: "${protocol}:127.0.0.1:${port}", advertise: "r.test:${port}"`
    const service = binding.startsWith('proxy') ? ', service: web' : ''
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined }
    const listeners = new ClientListeners({
      config: configured(`listeners: [{binding: ${binding}, ${address}${service}, ${given}}]`)
        .listeners,
      handshakeTimeoutMs: 5000,
      circuits,
      connections: () => [controller.connection],
      identity: () => ({ server: null }) as Partial<RouterIdentity> as RouterIdentity,
      clock: systemClock,
      log,
    })
    await listeners.start()
    closing.push(async () => {
      await listeners.stop()
      controller.close()
    })
    const first = `${JSON.stringify({ id: 'client', svcId: 'web' })}\n`
    if (protocol === 'tcp') {
      const client = connect(port, '127.0.0.1').on('error', () => undefined)
      client.write(first)
      closing.push(() => client.destroy())
    } else {
      const client = createSocket('udp4')
      client.send(first, port, '127.0.0.1')
      closing.push(() => client.close())
    }
    await eventually(() => circuits.opened.length).toBe(1)
    expect(circuits.opened[0]?.options).toMatchObject(expected)
  })

  test('in a tunneler, both for hosted and for intercepted services', async () => {
    const target = await echoServer()
    const port = await freePort()
    const host = { protocol: 'tcp', address: '127.0.0.1', port: target.port }
    const stage = await TunnelStage.create(
      serviceOf('s1', { 'host.v1': host }, ['Bind', 'Dial']),
      `{mode: proxy, services: ["name of s1:${port}"], mtu: 100}`,
    )
    closing.push(
      () => stage.close(),
      () => target.close(),
    )
    await stage.controller.terminator('s1')
    await eventually(() => stage.network.logged('service offered').length).toBe(1)
    const client = connect(port, '127.0.0.1').on('error', () => undefined)
    closing.push(() => client.destroy())
    let bytes = 0
    client.on('data', (part) => (bytes += part.length))
    client.write(new Uint8Array(10_000))
    await eventually(() => bytes).toBe(10_000)
    // A hundred pieces in each direction, and at least one acknowledgment in each direction.
    const [router] = stage.network.routers
    expect(router?.forwarder.figures()['forwarder.messages']).toBeGreaterThan(200)
  })
})
