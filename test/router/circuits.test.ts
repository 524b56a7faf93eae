import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'

import {
  InspectAnswerSchema,
  InspectRequestSchema,
  MetricsSchema,
  PeerState,
  PeerStateChangesSchema,
} from '../../proto/gen/router_pb.ts'
import { buildRouteMessages } from '../../src/fabric/circuits/route.ts'
import type { LiveLink } from '../../src/ports/live-table.ts'
import type { RouterProgram } from '../../src/router/router.ts'
import { freePort } from '../support/ports.ts'
import { digestOf, hostAt, Peer } from './forward/peer.ts'
import { endsOf } from './forward/support.ts'
import { eventually, type ScriptedController, TestNetwork } from './support.ts'
import { unrouteMessage } from '../../src/channel/messages/circuits.ts'

// Goal: two routers carry a circuit over a link between them, along the path that their controller
// has set. Method: real routers with real TLS between them; the test gives the controller's
// answers.

const MIB = 1024 * 1024
const circuit = endsOf('circuit1')

let first: TestNetwork
let second: TestNetwork
let controllers: readonly [ScriptedController, ScriptedController]
beforeEach(async () => {
  first = await TestNetwork.create()
  second = await TestNetwork.create(first, 'router2')
  controllers = [await first.controller('a'), await second.controller('b')]
})
afterEach(async () => {
  await first.close()
  await second.close()
})

async function inspected(controller: ScriptedController, name: string): Promise<unknown> {
  const request = create(InspectRequestSchema, { requestedValues: [name] })
  const body = toBinary(InspectRequestSchema, request)
  const reply = await controller.channel?.request({ contentType: 1013, body })
  const { values } = fromBinary(InspectAnswerSchema, reply?.body ?? new Uint8Array())
  return JSON.parse(values[0]?.value ?? 'null') as unknown
}

/** Starts two routers with a link. Returns the link ID as well. */
async function linkedRouters(): Promise<{ routers: RouterProgram[]; linkId: string }> {
  const port = await freePort()
  const often = 'metrics: {reportInterval: 100ms, intervalAgeThreshold: 0s}'
  const address = `127.0.0.1:${port}`
  const listener = `{binding: transport, bind: "tls:${address}", advertise: "${address}"}`
  const routers = [
    await first.running(
      [controllers[0].address],
      `link: {dialers: [{binding: transport}]}\n${often}\n`,
    ),
    await second.running([controllers[1].address], `link: {listeners: [${listener}]}\n${often}\n`),
  ]
  for (const controller of controllers) await eventually(() => controller.isConnected).toBe(true)
  const listeners = [{ address: `tls:${address}`, protocol: 'tls', groups: [] }]
  const changes = [{ id: 'router2', version: 'v2.0.0', state: PeerState.HEALTHY, listeners }]
  const message = create(PeerStateChangesSchema, { changes })
  controllers[0].send({ contentType: 1050, body: toBinary(PeerStateChangesSchema, message) })
  const links = async (): Promise<{ id: string }[]> =>
    ((await inspected(controllers[0], 'links')) as { links: { id: string }[] }).links
  await eventually(links).toHaveLength(1)
  return { routers, linkId: (await links())[0]?.id ?? '' }
}

async function lay(linkId: string): Promise<void> {
  const path = { routerIds: ['router1', 'router2'], links: [{ id: linkId } as LiveLink], cost: 0 }
  const dial = { binding: 'test', address: 'host', peerData: new Map() }
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

/** Bytes of the circuit by kind, over all reports: each byte is reported once. */
function used(controller: ScriptedController): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const { body } of controller.ofType(1007)) {
    for (const { buckets } of fromBinary(MetricsSchema, body).usageCounters) {
      for (const [kind, bytes] of Object.entries(buckets[circuit.id]?.values ?? {})) {
        sums[kind] = (sums[kind] ?? 0) + Number(bytes)
      }
    }
  }
  return sums
}

function clientAt(forwarder: RouterProgram['forwarder'], owner: ScriptedController): Peer {
  const client = new Peer()

  client.end = forwarder.open(
    {
      id: circuit.id,
      address: circuit.ingress,
      isTerminator: false,
      owner: { id: owner.id },
    },
    client,
  )
  return client
}

test('10 MiB in one direction and 1 MiB in the other arrive complete over two routers, and the usage reports of both routers contain these sizes', async () => {
  const { routers, linkId } = await linkedRouters()
  const [one, two] = routers as [RouterProgram, RouterProgram]
  const host = hostAt(two.forwarder)
  await lay(linkId)
  const client = clientAt(one.forwarder, controllers[0])
  const [there, back] = [randomBytes(10 * MIB), randomBytes(MIB)]
  client.send(there)
  host.send(back)
  await eventually(() => [host.isFinished, client.isFinished]).toEqual([true, true])
  expect(host.digest.digest('hex')).toBe(digestOf(there))
  expect(client.digest.digest('hex')).toBe(digestOf(back))
  expect(await inspected(controllers[1], 'router-circuits')).toMatchObject({
    circuits: {
      [circuit.id]: {
        ctrlId: 'b',
        routes: { [linkId]: circuit.egress, [circuit.egress]: linkId },
        destinations: { [linkId]: 'link', [circuit.egress]: 'end' },
      },
    },
  })
  const told = (name: string): number =>
    Number(
      controllers[1]
        .ofType(1007)
        .map(({ body }) => fromBinary(MetricsSchema, body).intValues[name] ?? 0n)
        .at(-1) ?? 0n,
    )
  await eventually(() => told('forwarder.bytes')).toBeGreaterThan(11 * MIB)
  expect(told('forwarder.circuits')).toBe(1)
  await eventually(() => used(controllers[0])).toMatchObject({
    'ingress.rx': 10 * MIB,
    'ingress.tx': MIB,
  })
  await eventually(() => used(controllers[1])).toMatchObject({
    'egress.rx': MIB,
    'egress.tx': 10 * MIB,
  })
  expect(told(`link.dropped_msgs:${linkId}`)).toBeGreaterThanOrEqual(0)
})

test('the circuit of a router that stops ends at the other router once the controller removes the circuit', async () => {
  const { routers, linkId } = await linkedRouters()
  const [one, two] = routers as [RouterProgram, RouterProgram]
  const host = hostAt(two.forwarder)
  await lay(linkId)
  const client = clientAt(one.forwarder, controllers[0])
  client.send(Buffer.from('x'))
  await eventually(() => host.bytes).toBe(1)
  await first.closeRouters()
  expect(client.closed).not.toBeNull()
  controllers[1].send(unrouteMessage(circuit.id, true))
  await eventually(() => host.closed).toBe('the circuit was unrouted')
})

test('a router that stops sends the usage that it has not reported yet', async () => {
  const router = await first.running([controllers[0].address], '')
  await eventually(() => controllers[0].isConnected).toBe(true)
  const host = hostAt(router.forwarder)
  const dial = { binding: 'test', address: 'host', peerData: new Map() }
  const path = { routerIds: ['router1'], links: [], cost: 0 }
  const [route] = buildRouteMessages(circuit, path, {
    attempt: 0,
    timeoutMs: 10_000,
    tags: {},
    dial,
  })
  await controllers[0].channel?.request(route ?? { contentType: 0 })
  clientAt(router.forwarder, controllers[0]).send(Buffer.from('hello'))
  await eventually(() => host.bytes).toBe(5)
  expect(used(controllers[0])).toEqual({})
  await first.closeRouters()
  await eventually(() => used(controllers[0])).toEqual({ 'ingress.rx': 5, 'egress.tx': 5 })
})
