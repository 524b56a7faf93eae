import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { randomBytes } from 'node:crypto'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'

import {
  FaultSchema,
  FaultSubject,
  PeerState,
  PeerStateChangesSchema,
  RouterLinksSchema,
} from '../../proto/gen/router_pb.ts'
import { buildRouteMessages } from '../../src/fabric/circuits/route.ts'
import type { LiveLink } from '../../src/ports/live-table.ts'
import { freePort } from '../support/ports.ts'
import { digestOf, hostAt, Peer } from './forward/peer.ts'
import { endsOf } from './forward/support.ts'
import { eventually, type ScriptedController, TestNetwork } from './support.ts'

// Goal: if the packets of a link are lost without a close or a reset, heartbeats end the link, and
// its circuits use another path. Method: real routers with a relay between them that drops all
// data, like a firewall that lost its connection table.

const MIB = 1024 * 1024
const circuit = endsOf('circuit1')

/** Relays links to one router. */
class Cable {
  readonly #server: Server
  #carried: { isSilent: boolean; readonly sockets: readonly Socket[] }[] = []

  private constructor(to: number) {
    this.#server = createServer((socket) => {
      const other = connect({ port: to, host: '127.0.0.1' })
      const carried = { isSilent: false, sockets: [socket, other] }
      this.#carried.push(carried)
      for (const [from, into] of [
        [socket, other],
        [other, socket],
      ] as const) {
        from.on('data', (chunk) => {
          if (!carried.isSilent) into.write(chunk)
        })
        from.on('error', () => undefined)
        from.on('close', () => {
          if (!carried.isSilent) into.destroy()
        })
      }
    })
  }

  static async to(port: number): Promise<Cable> {
    const cable = new Cable(port)
    await new Promise<void>((done) => cable.#server.listen(0, '127.0.0.1', done))
    return cable
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  /** Drops all data on the existing links without informing either side; new links work. */
  silence(): void {
    for (const carried of this.#carried) carried.isSilent = true
  }

  close(): void {
    this.#server.close()
    for (const { sockets } of this.#carried) for (const socket of sockets) socket.destroy()
    this.#carried = []
  }
}

let first: TestNetwork
let second: TestNetwork
let controllers: readonly [ScriptedController, ScriptedController]
let cable: Cable
let linkPort: number
beforeEach(async () => {
  first = await TestNetwork.create()
  second = await TestNetwork.create(first, 'router2')
  controllers = [await first.controller('a'), await second.controller('b')]
  linkPort = await freePort()
  cable = await Cable.to(linkPort)
})
afterEach(async () => {
  await first.close()
  await second.close()
  cable.close()
})

/** Links that the first router has reported; the newest is last. */
const toldLinks = (): { readonly id: string; readonly iteration: number }[] =>
  controllers[0]
    .ofType(1035)
    .flatMap(({ body }) => fromBinary(RouterLinksSchema, body).links)
    .map(({ id, iteration }) => ({ id, iteration }))

async function lay(linkId: string, isReroute: boolean): Promise<void> {
  const path = { routerIds: ['router1', 'router2'], links: [{ id: linkId } as LiveLink], cost: 0 }
  const dial = isReroute ? null : { binding: 'test', address: 'host', peerData: new Map() }
  const routes = buildRouteMessages(circuit, path, {
    attempt: 0,
    timeoutMs: 10_000,
    tags: {},
    dial,
  })
  for (const [at, controller] of controllers.entries()) {
    const answer = await controller.channel?.request(routes[at] ?? { contentType: 0 })
    expect(answer?.headers.has(1102), 'success').toBe(true)
  }
}

test('both routers close a link that becomes silent, and a data stream continues over the next link without loss', async () => {
  const heartbeats =
    'heartbeats: {sendInterval: 100ms, checkInterval: 50ms, closeUnresponsiveTimeout: 1s}'
  const quick = 'healthyDialBackoff: {minRetryInterval: 20ms, maxRetryInterval: 100ms}'
  const listener = `{binding: transport, bind: "tls:127.0.0.1:${linkPort}", advertise: "127.0.0.1:${linkPort}"}`
  const links = [`dialers: [{binding: transport, ${quick}}]`, `listeners: [${listener}]`]
  const [one, two] = [
    await first.running([controllers[0].address], `link: {${links[0]}, ${heartbeats}}\n`),
    await second.running([controllers[1].address], `link: {${links[1]}, ${heartbeats}}\n`),
  ]
  for (const controller of controllers) await eventually(() => controller.isConnected).toBe(true)
  const listeners = [{ address: `tls:127.0.0.1:${cable.port}`, protocol: 'tls', groups: [] }]
  const changes = [{ id: 'router2', version: 'v2.0.0', state: PeerState.HEALTHY, listeners }]
  const message = create(PeerStateChangesSchema, { changes })
  controllers[0].send({ contentType: 1050, body: toBinary(PeerStateChangesSchema, message) })
  await eventually(toldLinks).toHaveLength(1)
  const [silent] = toldLinks()

  const host = hostAt(two.forwarder)
  await lay(silent?.id ?? '', false)
  const client = new Peer()
  const place = { id: circuit.id, address: circuit.ingress, isTerminator: false }
  client.end = one.forwarder.open({ ...place, owner: { id: controllers[0].id } }, client)
  host.onBytes = (bytes) => {
    if (bytes > 0) cable.silence()
  }
  const sent = randomBytes(16 * MIB)
  client.send(sent)
  await eventually(() => host.bytes).toBeGreaterThan(0)
  host.onBytes = () => undefined

  const lost = { subject: FaultSubject.LINK, id: silent?.id, iteration: silent?.iteration }
  await eventually(() =>
    controllers[0].ofType(1004).map(({ body }) => fromBinary(FaultSchema, body)),
  ).toContainEqual(expect.objectContaining(lost))
  for (const network of [first, second]) {
    await eventually(() => network.logged('lost').map(({ fields }) => fields['reason'])).toContain(
      'no answer to heartbeats',
    )
  }
  expect([host.isFinished, client.closed]).toEqual([false, null])

  await eventually(() => toldLinks().length).toBeGreaterThan(1)
  await lay(toldLinks().at(-1)?.id ?? '', true)
  await eventually(() => host.isFinished).toBe(true)
  expect(host.digest.digest('hex')).toBe(digestOf(sent))
})
