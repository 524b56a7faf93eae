import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  FaultSchema,
  FaultSubject,
  LinkListenersSchema,
  LinkStateUpdateSchema,
  MetricsSchema,
  PeerState,
  type PeerStateChange,
  PeerStateChangesSchema,
  RouterLinksSchema,
  VerifyRouterSchema,
} from '../../proto/gen/router_pb.ts'
import { createLinkHandler, closeLinkMessage } from '../../src/fabric/links/link-handler.ts'
import { LinkTable } from '../../src/fabric/links/link-table.ts'
import { RouterPeersHandler } from '../../src/fabric/links/router-peers-handler.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { eventually } from '../support/eventually.ts'
import { RouterStage } from './stage.ts'

let stage: RouterStage
let table: LinkTable
const barred = new Set<string>()
let seen: string[]

beforeEach(() => {
  barred.clear()
  seen = []
  stage = new RouterStage()
  const { channels } = stage
  table = new LinkTable({
    owner: 'ctrl1',
    isBarred: (id) => barred.has(id),
    isConnected: (id) => channels.connection(id) !== undefined,
    onSeen: ({ id }, how) => seen.push(`${id} ${how}`),
    onGone: () => undefined,
    sendGone: (id, link) => channels.connection(id)?.channel.send(closeLinkMessage(link)),
  })
  channels.add(
    new RouterPeersHandler({
      routerIds: () => stage.routerIds,
      connections: () => channels.connections(),
    }),
  )
  channels.add(
    createLinkHandler({
      table,
      log: { info: () => undefined, warn: (_fields, message) => stage.lines.push(message) },
      onOtherFault: () => undefined,
      isCertificateOf: (id, prints) => id === 'er1' && prints.includes('aa'),
    }),
  )
})
afterEach(() => stage.channels.stop())

type ReportedLinks = MessageInitShape<typeof RouterLinksSchema>

async function report(
  pipe: Pipe,
  links: ReportedLinks['links'],
  fullRefresh = false,
): Promise<void> {
  const message = create(RouterLinksSchema, { links: links ?? [], fullRefresh })
  pipe.say({ contentType: 1035, sequence: 5, body: toBinary(RouterLinksSchema, message) })
  await settle()
}

const link = { id: 'l1', destRouterId: 'er2', linkProtocol: 'tls', iteration: 1 }

async function fault(pipe: Pipe, subject: FaultSubject, iteration: number): Promise<void> {
  const message = create(FaultSchema, { subject, id: 'l1', iteration })
  pipe.say({ contentType: 1004, sequence: 6, body: toBinary(FaultSchema, message) })
  await settle()
}

function peersTold(pipe: Pipe): PeerStateChange[] {
  return pipe.ofType(1050).flatMap(({ body }) => fromBinary(PeerStateChangesSchema, body).changes)
}

describe('a link', () => {
  test('is shown once the router that dialed it has reported it, and as connected once both routers are connected', async () => {
    const er1 = await stage.dial('er1')
    await report(er1, [link])
    expect(table.get('l1')).toMatchObject({
      sourceRouterId: 'er1',
      state: 'Pending',
      cost: 130_001,
    })
    await stage.dial('er2')
    expect(table.get('l1')).toMatchObject({ destRouterId: 'er2', state: 'Connected' })
  })

  test('is removed if a full report omits it, and kept if a partial report omits it', async () => {
    const er1 = await stage.dial('er1')
    await report(er1, [link])
    await report(er1, [{ ...link, id: 'l2' }])
    expect(table.list().length).toBe(2)
    await report(er1, [{ ...link, id: 'l2' }], true)
    expect(table.list().map(({ id }) => id)).toEqual(['l2'])
  })

  test('with a disabled router is not shown, and the controller requests the other router to close the link', async () => {
    const er1 = await stage.dial('er1')
    barred.add('er2')
    await report(er1, [link, { ...link, id: 'l2', destRouterId: 'er3' }])
    expect(table.list().map(({ id }) => id)).toEqual(['l2'])
    const told = er1.ofType(1004).map(({ body }) => fromBinary(FaultSchema, body).id)
    expect(told).toEqual(['l1'])
    // If another router dialed the link, a router that reports the same ID does not end it.
    barred.add('er4')
    await report(await stage.dial('er5'), [{ ...link, id: 'l2', destRouterId: 'er4' }])
    expect(table.get('l2')?.sourceRouterId).toBe('er1')
  })

  test('is removed when the channel of the router that dialed it closes', async () => {
    const er1 = await stage.dial('er1')
    await report(er1, [link])
    er1.destroy()
    await settle()
    expect(table.list().length).toBe(0)
  })

  test('cannot be taken over or ended by a router that is not one of its two routers', async () => {
    const er1 = await stage.dial('er1')
    await report(er1, [link])
    const er3 = await stage.dial('er3')
    await report(er3, [{ ...link, destRouterId: 'er9', iteration: 7 }])
    await fault(er3, FaultSubject.LINK, 7)
    expect(table.get('l1')).toMatchObject({ sourceRouterId: 'er1', destRouterId: 'er2' })
  })

  test('is removed if one of its routers reports its loss, and the controller informs the other router', async () => {
    const er1 = await stage.dial('er1')
    const er2 = await stage.dial('er2')
    await report(er1, [{ ...link, iteration: 3 }])
    await fault(er2, FaultSubject.LINK, 2)
    expect(table.list().length).toBe(1)
    await fault(er2, FaultSubject.LINK, 3)
    expect(table.list().length).toBe(0)
    const [told] = er1.ofType(1004).map(({ body }) => fromBinary(FaultSchema, body))
    expect(told).toMatchObject({ subject: FaultSubject.LINK, id: 'l1', iteration: 3 })
  })

  test('costs the sum of the latencies that its two routers measure', async () => {
    const er1 = await stage.dial('er1')
    const er2 = await stage.dial('er2')
    await report(er1, [link])
    for (const [pipe, mean] of [
      [er1, 2_400_000],
      [er2, 3_900_000],
    ] as const) {
      const metrics = create(MetricsSchema, { histograms: { 'link.l1.latency': { mean } } })
      pipe.say({ contentType: 1007, sequence: 9, body: toBinary(MetricsSchema, metrics) })
    }
    await settle()
    expect(table.get('l1')).toMatchObject({ sourceLatencyNs: 2_400_000, cost: 6 })
  })

  test('shows the sockets that a router reports for the current iteration of the link', async () => {
    const er1 = await stage.dial('er1')
    await report(er1, [link])
    const conns = [{ type: 'link.default', localAddr: 'a', remoteAddr: 'b' }]
    for (const linkIteration of [1, 2]) {
      const update = create(LinkStateUpdateSchema, {
        linkId: 'l1',
        linkIteration,
        connState: { conns: linkIteration === 1 ? conns : [] },
      })
      er1.say({ contentType: 1053, sequence: 3, body: toBinary(LinkStateUpdateSchema, update) })
    }
    await settle()
    expect(table.get('l1')?.connections).toEqual([
      { type: 'link.default', sourceAddress: 'a', destAddress: 'b' },
    ])
  })

  test('is closed by the other router if one of its routers is disabled', async () => {
    const er1 = await stage.dial('er1')
    const er2 = await stage.dial('er2')
    await report(er1, [link])
    stage.revoked.add('er2')
    stage.channels.sweep()
    await settle()
    expect(er2.destroyed).toBe(true)
    expect(table.list().length).toBe(0)
    expect(er1.ofType(1004)).toHaveLength(1)
  })

  test('is closed at both routers when an operator removes it', async () => {
    const er1 = await stage.dial('er1')
    const er2 = await stage.dial('er2')
    await report(er1, [link])
    expect(table.change('l1', { isDown: true, staticCost: 5 })).toBe(true)
    expect(table.get('l1')).toMatchObject({ isDown: true, staticCost: 5 })
    expect(table.remove('l1')).toBe(true)
    expect(table.remove('l1')).toBe(false)
    expect(er1.ofType(1004)).toHaveLength(1)
    expect(er2.ofType(1004)).toHaveLength(1)
  })

  test('that occurs twice in one report has the values of its second occurrence, and a link without an ID is ignored', async () => {
    const er1 = await stage.dial('er1')
    await report(er1, [
      { ...link, iteration: 2 },
      { ...link, id: '' },
      { ...link, iteration: 3 },
    ])
    expect(table.list().map(({ id, iteration }) => [id, iteration])).toEqual([['l1', 3]])
    expect(seen).toEqual(['l1 new'])
  })

  test('is omitted if it exceeds the limit of links per router, and the omission is logged', async () => {
    const er1 = await stage.dial('er1')
    const many = Array.from({ length: routerLimits.linksPerRouterMax + 3 }, (_, at) => ({
      ...link,
      id: `l${at}`,
    }))
    await report(er1, many, true)
    await eventually(() => {
      expect(stage.lines.map((line) => line.trim())).toContain('too many links of a router')
    })
    expect(table.list().length).toBe(routerLimits.linksPerRouterMax)
  })

  test('is not added by a malformed report, and only the channel of the report’s sender is closed', async () => {
    const er1 = await stage.dial('er1')
    const er2 = await stage.dial('er2')
    er1.say({ contentType: 1035, sequence: 4, body: new Uint8Array([0xff, 0xff, 0xff]) })
    await eventually(() => {
      expect(er1.destroyed).toBe(true)
    })
    expect(er2.destroyed).toBe(false)
    expect(table.list()).toHaveLength(0)
  })
})

describe('a router that is connected to a controller', () => {
  const listeners = [{ address: 'tls:one:6000', protocol: 'tls', groups: ['default'] }]
  const hello = toBinary(LinkListenersSchema, create(LinkListenersSchema, { listeners }))

  test('receives the list of all other routers, and the link listeners of those that are connected', async () => {
    stage.routerIds.add('er9')
    await stage.dial('er1', [[1000, hello]])
    const er2 = await stage.dial('er2')
    const told = new Map(peersTold(er2).map((change) => [change.id, change]))
    expect([...told.keys()].sort()).toEqual(['er1', 'er9'])
    expect(told.get('er9')).toMatchObject({ state: PeerState.UNHEALTHY, version: '' })
    expect(told.get('er1')).toMatchObject({ state: PeerState.HEALTHY, version: 'v2.0.3' })
    expect(told.get('er1')?.listeners[0]).toMatchObject({ address: 'tls:one:6000' })
    const linkListeners = [{ address: 'tls:one:6000', protocol: 'tls' }]
    expect(stage.statuses.of('er1')).toMatchObject({ linkListeners })
  })

  test('is announced to the other routers at the next periodic run, and never to itself', async () => {
    const er1 = await stage.dial('er1')
    stage.channels.sweep()
    const er2 = await stage.dial('er2', [[1000, hello]])
    stage.channels.sweep()
    await settle()
    expect(peersTold(er1).map(({ id, state }) => [id, state])).toEqual([['er2', PeerState.HEALTHY]])
    expect(peersTold(er2).every(({ id }) => id === 'er1')).toBe(true)
    er2.destroy()
    await settle()
    stage.channels.sweep()
    stage.routerIds.delete('er2')
    stage.channels.sweep()
    await settle()
    expect(
      peersTold(er1)
        .slice(1)
        .map(({ state }) => state),
    ).toEqual([PeerState.UNHEALTHY, PeerState.REMOVED])
  })

  test('is announced again when its link listeners change', async () => {
    const er1 = await stage.dial('er1')
    const er2 = await stage.dial('er2')
    stage.channels.sweep()
    er2.say({ contentType: 1056, sequence: 3, body: hello })
    await settle()
    stage.channels.sweep()
    await settle()
    expect(peersTold(er1).at(-1)?.listeners).toHaveLength(1)
    expect(stage.statuses.of('er2')?.linkListeners).toHaveLength(1)
  })

  test.each([
    ['er1', ['aa'], true],
    ['er1', ['bb'], false],
    ['er2', ['aa'], false],
  ])(
    'can ask the controller whether the router %s has the certificate %s, and receives the response %s',
    async (routerId, fingerprints, isRight) => {
      const er3 = await stage.dial('er3')
      const body = toBinary(
        VerifyRouterSchema,
        create(VerifyRouterSchema, { routerId, fingerprints }),
      )
      er3.say({ contentType: 1036, sequence: 77, body })
      await settle()
      const result = er3.ofType(2).find(({ headers }) => headers.get(1)?.[0] === 77)
      expect(result?.headers.get(2)?.[0]).toBe(Number(isRight))
    },
  )
})

test('circuits use exactly the links that are up between connected routers, after any sequence of connects and disconnects', () => {
  const here = new Set<string>()
  const many = new LinkTable({
    owner: 'ctrl1',
    isBarred: () => false,
    isConnected: (id) => here.has(id),
    onGone: () => undefined,
    sendGone: () => undefined,
  })
  const random = seededRandom(17)
  const router = (): string => `r${random.integer(0, 9)}`
  const report = (id: string, from: string): void => {
    const sockets = { protocol: 'tls', dialAddress: '', connections: [] }
    const iteration = random.integer(1, 3)
    many.report(from, { id, destRouterId: router(), iteration, ...sockets })
  }
  for (let round = 0; round < 2000; round += 1) {
    const [id, at] = [`l${random.integer(0, 40)}`, router()]
    here.add(router())
    const change = random.integer(0, 20)
    if (change < 15) report(id, at)
    else if (change === 15) many.lost(at, id, 3)
    else if (change === 16) many.remove(id)
    else if (change === 17) for (const _ of many.keep(at, new Set([id])));
    else if (change === 18) many.forget(at)
    else if (change === 19) many.banish(at)
    else if (random.integer(0, 1) === 0) many.change(id, { isDown: random.integer(0, 1) === 0 })
    else here.delete(at)
    const usable = many.list().filter(({ isDown, state }) => !isDown && state === 'Connected')
    for (const router of ['r0', 'r4', 'r9']) {
      const visited: string[] = []
      many.visitUsable(router, (to, cost, { id }) => visited.push(`${id} ${to} ${cost}`))
      const expected = usable.flatMap(({ id, sourceRouterId, destRouterId, cost }) => [
        ...(sourceRouterId === router ? [`${id} ${destRouterId} ${cost}`] : []),
        ...(destRouterId === router ? [`${id} ${sourceRouterId} ${cost}`] : []),
      ])
      expect(visited.sort(), `round ${round}, ${router}`).toEqual(expected.sort())
    }
  }
})
