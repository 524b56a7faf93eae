import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { connect } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  FaultSchema,
  InspectRequestSchema,
  InspectAnswerSchema,
  LinkListenersSchema,
  MetricsSchema,
  PeerState,
  PeerStateChangesSchema,
  RouterLinksSchema,
} from '../../proto/gen/router_pb.ts'
import { linkHelloMessage } from '../../src/channel/messages/links.ts'
import { Channel } from '../../src/channel/channel.ts'
import { type ChannelMessage, encodeFrame } from '../../src/channel/frame.ts'
import { readFlag } from '../../src/channel/headers.ts'
import { channelLimits } from '../../src/channel/limits.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { freePort } from '../support/ports.ts'
import { eventually, type ScriptedController, TestNetwork } from './support.ts'

// Goal: two routers that learn of each other establish one link, and the dialing one reports it to
// every controller. Method: real routers, and for each router a controller whose answers the test
// gives.

interface Side {
  readonly network: TestNetwork
  readonly controller: ScriptedController
  readonly port: number
}

let one: Side
let other: Side
const closing: (() => void)[] = []
beforeEach(async () => {
  const first = await TestNetwork.create()
  const second = await TestNetwork.create(first, 'router2')
  one = { network: first, controller: await first.controller('a'), port: await freePort() }
  other = { network: second, controller: await second.controller('b'), port: await freePort() }
})
afterEach(async () => {
  for (const close of closing.splice(0)) close()
  await one.network.close()
  await other.network.close()
})

const quick = 'healthyDialBackoff: {minRetryInterval: 20ms, maxRetryInterval: 100ms}'

async function start(side: Side, link?: string): Promise<void> {
  const listener = `{binding: transport, bind: "tls:127.0.0.1:${side.port}", advertise: "127.0.0.1:${side.port}"}`
  const both = `link: {listeners: [${listener}], dialers: [{binding: transport, ${quick}}], heartbeats: {sendInterval: 100ms}}`
  const often = 'metrics: {reportInterval: 100ms, intervalAgeThreshold: 0s}'
  await side.network.running([side.controller.address], `${link ?? both}\n${often}\n`)
  await eventually(() => side.controller.isConnected).toBe(true)
}

/** As a controller, sends the router `to` a description of the router `about`. */
function tell(
  to: Side,
  about: Side,
  state: PeerState = PeerState.HEALTHY,
  groups: string[] = [],
): void {
  const listeners = [{ address: `tls:127.0.0.1:${about.port}`, protocol: 'tls', groups }]
  const change = { id: about.network.routerId, version: 'v2.0.0', state, listeners }
  const message = create(PeerStateChangesSchema, { changes: [change] })
  to.controller.send({ contentType: 1050, body: toBinary(PeerStateChangesSchema, message) })
}

async function linksOf({
  controller,
}: Side): Promise<{ id: string; dest: string; dialed: boolean; iteration: number }[]> {
  const body = toBinary(
    InspectRequestSchema,
    create(InspectRequestSchema, { requestedValues: ['links'] }),
  )
  const reply = await controller.channel?.request({ contentType: 1013, body })
  const { values } = fromBinary(InspectAnswerSchema, reply?.body ?? new Uint8Array())
  return (JSON.parse(values[0]?.value ?? '{}') as { links: [] }).links
}

const reports = ({ controller }: Side) =>
  controller.ofType(1035).map(({ body }) => fromBinary(RouterLinksSchema, body))
const faults = ({ controller }: Side) =>
  controller.ofType(1004).map(({ body }) => fromBinary(FaultSchema, body))

describe('Routers with links', () => {
  test('report their link listeners in their hello, and have one link after one of them has dialed the other', async () => {
    await start(one)
    await start(other)
    const value = one.controller.hellos[0]?.headers.get(1000) ?? new Uint8Array()
    expect(fromBinary(LinkListenersSchema, value).listeners).toMatchObject([
      { address: `tls:127.0.0.1:${one.port}`, protocol: 'tls', groups: ['default'] },
    ])
    tell(one, other)
    await eventually(() => linksOf(one)).toMatchObject([{ dest: 'router2', dialed: true }])
    await eventually(() => linksOf(other)).toMatchObject([{ dest: 'router1', dialed: false }])
    const [link] = await linksOf(one)
    await eventually(() => reports(one)).toHaveLength(2)
    expect(reports(one)).toMatchObject([
      { links: [], fullRefresh: true },
      {
        links: [{ id: link?.id, destRouterId: 'router2', linkProtocol: 'tls', iteration: 1 }],
        fullRefresh: false,
      },
    ])
    expect(reports(other), 'only the dialer reports').toHaveLength(1)
  })

  test('keep only one link if both dial each other, and agree which link this is', async () => {
    await start(one)
    await start(other)
    tell(one, other)
    tell(other, one)
    const ids = async (): Promise<string[]> =>
      [...(await linksOf(one)), ...(await linksOf(other))].map(({ id }) => id)
    await eventually(async () => (await ids()).length).toBe(2)
    await eventually(async () => new Set(await ids()).size).toBe(1)
  })

  test('dial again if the link is lost, and report both the lost and the new link to controllers', async () => {
    await start(one)
    await start(other)
    tell(one, other)
    await eventually(() => linksOf(one)).toHaveLength(1)
    const [link] = await linksOf(one)
    await other.network.closeRouters()
    await eventually(() => faults(one)).toMatchObject([{ subject: 2, id: link?.id, iteration: 1 }])
    await start(other)
    await eventually(() => linksOf(one)).toHaveLength(1)
    const [again] = await linksOf(one)
    expect(again?.id).toBe(link?.id)
    expect(again?.iteration).toBeGreaterThan(1)
  })

  test('close a link when an operator closes it, and dial it again', async () => {
    await start(one)
    await start(other)
    tell(one, other)
    await eventually(() => linksOf(one)).toHaveLength(1)
    const [link] = await linksOf(one)
    const fault = create(FaultSchema, { subject: 2, id: link?.id ?? '', iteration: 1 })
    other.controller.send({ contentType: 1004, body: toBinary(FaultSchema, fault) })
    await eventually(async () => (await linksOf(one))[0]?.iteration).toBe(2)
  })

  test('report all their links to a controller that connects later', async () => {
    await start(one)
    await start(other)
    tell(one, other)
    await eventually(() => linksOf(one)).toHaveLength(1)
    one.controller.channel?.close('away')
    await eventually(() => reports(one).at(-1)).toMatchObject({
      links: [{ destRouterId: 'router2' }],
      fullRefresh: true,
    })
  })

  test('measure the latency of a link with heartbeats', async () => {
    await start(one)
    await start(other)
    tell(one, other)
    await eventually(() => linksOf(one)).toHaveLength(1)
    const [link] = await linksOf(one)
    const name = `link.${link?.id}.latency`
    const measured = (): number =>
      one.controller
        .ofType(1007)
        .map(({ body }) => fromBinary(MetricsSchema, body).histograms[name]?.mean ?? 0)
        .at(-1) ?? 0
    await eventually(measured).toBeGreaterThan(0)
  })

  test('close the link to a removed router, and do not dial a router without a common link group', async () => {
    await start(one)
    await start(other)
    tell(one, other, 0, ['elsewhere'])
    tell(one, other, 1)
    expect(await linksOf(one)).toEqual([])
    tell(one, other)
    await eventually(() => linksOf(one)).toHaveLength(1)
    tell(one, other, 2)
    await eventually(() => linksOf(one)).toEqual([])
    await eventually(() => linksOf(other)).toEqual([])
  })
})

describe('A router refuses a link', () => {
  test('if no controller confirms the certificate of the router that dials', async () => {
    await start(one)
    await start(other)
    other.controller.verifies = false
    tell(one, other)
    await eventually(() => other.network.logged('link refused').length).toBeGreaterThan(0)
    expect(JSON.stringify(other.network.logged('link refused')[0]?.fields)).toContain(
      'no controller knows',
    )
    expect(await linksOf(other)).toEqual([])
    expect(await linksOf(one)).toEqual([])
  })

  test.each([
    [
      'the certificate belongs to another router',
      'router3',
      'router1',
      'router2',
      'the certificate belongs to another router',
    ],
    ['another router was dialed', 'router1', 'router1', 'router3', 'another router was dialed'],
    ['the router dials itself', 'router2', 'router2', 'router2', 'a router has no link to itself'],
  ])(
    'if the router IDs and the certificate do not match: %s',
    async (_, holder, routerId, dialedId, reason) => {
      await start(other)
      const { certificatePem: cert, privateKeyPem: key } = await one.network.leaf(holder, [], [])
      const socket = connect({
        host: '127.0.0.1',
        port: other.port,
        cert,
        key,
        ca: one.network.root.certificatePem,
        ALPNProtocols: ['ziti-link'],
      })
      socket.on('error', () => undefined)
      const hello = linkHelloMessage({
        linkId: '0',
        routerId,
        dialedId,
        dialedVersion: 'v2.0.0',
        iteration: 1,
      })
      socket.write(encodeFrame(hello))
      await eventually(() => other.network.logged('link refused')).toHaveLength(1)
      expect(other.network.logged('link refused')[0]?.fields).toMatchObject({ reason })
      expect(other.controller.ofType(1036), 'no controller was asked').toEqual([])
      socket.destroy()
    },
  )

  test('if the two routers already have a link with a smaller ID; the response contains this reason', async () => {
    await start(other)
    const { certificatePem: cert, privateKeyPem: key } = await one.network.leaf('router1', [], [])
    const dial = async (linkId: string): Promise<ChannelMessage> => {
      const ca = one.network.root.certificatePem
      const to = { host: '127.0.0.1', port: other.port, ALPNProtocols: ['ziti-link'] }
      const socket = connect({ ...to, cert, key, ca })
      socket.on('error', () => undefined)
      closing.push(() => socket.destroy())
      const said = { dialedId: 'router2', dialedVersion: 'v2.0.0', iteration: 1 }
      const { promise, resolve } = Promise.withResolvers<ChannelMessage>()
      const channel: Channel = new Channel({
        socket,
        limits: channelLimits,
        clock: systemClock,
        hello: linkHelloMessage({ ...said, linkId, routerId: 'router1' }),
        onHello: (answer) => {
          channel.open(null)
          resolve(answer)
        },
        onMessage: () => null,
        onClose: () => undefined,
      })
      return await promise
    }
    const isTaken = ({ headers }: ChannelMessage): boolean => readFlag(headers, 2)
    expect(isTaken(await dial('a'))).toBe(true)
    const refused = await dial('b')
    expect(isTaken(refused)).toBe(false)
    expect(Buffer.from(refused.body).toString()).toBe('a link with a smaller id exists already')
    expect(await linksOf(other)).toMatchObject([{ id: 'a' }])
  })

  test('if the router that responds is not the router that was dialed', async () => {
    await start(one)
    await start(other)
    const listeners = [{ address: `tls:127.0.0.1:${other.port}`, protocol: 'tls', groups: [] }]
    const changes = [{ id: 'router3', version: 'v2.0.0', state: PeerState.HEALTHY, listeners }]
    const message = create(PeerStateChangesSchema, { changes })
    one.controller.send({ contentType: 1050, body: toBinary(PeerStateChangesSchema, message) })
    await eventually(() => one.network.logged('no link to the router')).toHaveLength(1)
    expect(JSON.stringify(one.network.logged('no link to the router')[0]?.fields)).toContain(
      'its certificate belongs to another router',
    )
    expect(await linksOf(other)).toEqual([])
  })
})
