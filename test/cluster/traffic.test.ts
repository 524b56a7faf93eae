import { afterEach, describe, expect, test } from 'vitest'

import type { PeerChannel, PeerHandler } from '../../src/cluster/peer-channel.ts'
import { encodePeerMessage } from '../../src/cluster/peer/peer-message.ts'
import { peerMethods } from '../../src/cluster/peer/peer-methods.ts'
import { TrafficExchange } from '../../src/cluster/traffic/cluster-traffic.ts'
import { clusterTrafficLimits } from '../../src/cluster/traffic/limits.ts'
import {
  type LocalTraffic,
  type RecordTraffic,
  trafficCounterNames,
  type TrafficSeries,
  trafficSpans,
  type TrafficTotals,
} from '../../src/ports/traffic.ts'
import { formCluster, type TestCluster } from './cluster-fixture.ts'
import { until } from './mesh-fixture.ts'

let cluster: TestCluster | null = null
afterEach(async () => {
  await cluster?.stop()
  cluster = null
})

const NOW_MS = 1_800_000_000_000
const width = trafficCounterNames.length

function filled(hour: number, day: number, value: number): TrafficSeries {
  return {
    hour: new Array<number>(hour * width).fill(value),
    day: new Array<number>(day * width).fill(value),
  }
}

const seriesOf = (value: number): TrafficSeries =>
  filled(trafficSpans.hour.periods, trafficSpans.day.periods, value)
const totalsOf = (value: number): TrafficSeries => filled(1, 1, value)

/** A controller that has counted traffic for these records, with the same value for each figure. */
function counted(values: Readonly<Record<string, number>>, other = 0): LocalTraffic {
  const rows = (of: (value: number) => TrafficSeries): readonly RecordTraffic[] =>
    Object.entries(values).map(([id, value]) => ({ id, figures: of(value) }))
  return {
    totals: (_kind, nowMs): TrafficTotals => {
      expect(nowMs).toBe(NOW_MS)
      return { rows: rows(totalsOf), other: totalsOf(other) }
    },
    series: (_kind, ids) => rows(seriesOf).filter(({ id }) => ids.includes(id)),
  }
}

describe('The traffic of a service in a cluster', () => {
  test('is the sum over all controllers, and the result names the controllers that do not respond', async () => {
    cluster = await formCluster(3)
    const exchanges: TrafficExchange[] = []
    const values = [{ wiki: 1, shop: 2 }, { wiki: 10 }, null]
    for (const [at, id] of cluster.ids.entries()) {
      const { clusterNode } = await cluster.start(id)
      const local = values[at]
      // The third controller has no such counts, like one of an earlier release.
      if (local === null || local === undefined) continue
      const deps = { cluster: clusterNode, peers: clusterNode.peers, local: counted(local, 5) }
      exchanges.push(new TrafficExchange(deps))
    }
    const [first, second] = exchanges
    const { peers } = cluster.node('n1').clusterNode
    await until('n1 has links to both', () => peers.readyPeers().length === 2)
    expect(await first?.totals('service', NOW_MS)).toEqual({
      found: {
        rows: [
          { id: 'wiki', figures: totalsOf(11) },
          { id: 'shop', figures: totalsOf(2) },
        ],
        other: totalsOf(10),
      },
      silent: ['n3'],
    })
    expect(await first?.series('router', ['wiki', 'none'], NOW_MS)).toEqual({
      found: [{ id: 'wiki', figures: seriesOf(11) }],
      silent: ['n3'],
    })
    expect((await second?.series('router', ['shop'], NOW_MS))?.found).toEqual([
      { id: 'shop', figures: seriesOf(2) },
    ])
    expect(await first?.series('router', ['wiki'], NOW_MS, ['n2'])).toEqual({
      found: [{ id: 'wiki', figures: seriesOf(1) }],
      silent: ['n2', 'n3'],
    })
    await cluster.node('n2').kill()
    expect(await first?.series('service', ['wiki'], NOW_MS)).toEqual({
      found: [{ id: 'wiki', figures: seriesOf(1) }],
      silent: ['n2', 'n3'],
    })
  })
})

/** Handlers of one controller that sends requests to itself instead of another one. */
function looped(local: LocalTraffic, answer?: (payload: Uint8Array) => Uint8Array) {
  const handlers = new Map<string, PeerHandler>()
  const peers = {
    serve: (method: string, _access: string, handler: PeerHandler) => {
      handlers.set(method, handler)
    },
    call: async (_to: string, method: string, payload: Uint8Array) => {
      const sent = await handlers.get(method)?.({} as never, payload)
      return answer?.(sent ?? payload) ?? sent
    },
  } as unknown as PeerChannel
  const members = (): never => [{ id: 'n1' }, { id: 'n2' }] as never
  return {
    handlers,
    exchange: new TrafficExchange({ cluster: { selfId: 'n1', members }, peers, local }),
  }
}

describe('Messages between controllers about traffic', () => {
  test('stay below the size limit, and rows that do not fit are added up in one row', async () => {
    const ids = Array.from({ length: 1500 }, (_, n) => [`${'x'.repeat(100)}${n}`, 1] as const)
    const { handlers } = looped(counted(Object.fromEntries(ids)))
    const { trafficTotals } = peerMethods
    const request = encodePeerMessage(trafficTotals.request, {
      kind: 'service',
      nowMs: BigInt(NOW_MS),
    })
    const sent = await handlers.get(trafficTotals.name)?.({} as never, request)
    expect(sent?.length).toBeLessThan(clusterTrafficLimits.trafficTotalsBytesMax)
    const { exchange } = looped(counted(Object.fromEntries(ids)))
    const { found, silent } = await exchange.totals('service', NOW_MS)
    const sum = found.rows.reduce((bytes, { figures }) => bytes + (figures.hour[0] ?? 0), 0)
    expect([found.rows.length, sum + (found.other.hour[0] ?? 0), silent]).toEqual([1500, 3000, []])
    expect(found.other.hour[0]).toBeGreaterThan(0)
  })

  test('from another release count as no response if their rows do not have as many figures as those of this release', async () => {
    const shorter = encodePeerMessage(peerMethods.trafficSeries.answer, {
      rows: [{ id: 'wiki', hour: [1], day: [1] }],
    })
    const { exchange } = looped(counted({ wiki: 1 }), () => shorter)
    expect(await exchange.series('service', ['wiki'], NOW_MS)).toEqual({
      found: [{ id: 'wiki', figures: seriesOf(1) }],
      silent: ['n2'],
    })
  })

  test('are refused for a kind of record without traffic', async () => {
    const { handlers } = looped(counted({}))
    const { trafficSeries } = peerMethods
    const request = encodePeerMessage(trafficSeries.request, {
      kind: 'identity',
      nowMs: 1n,
      ids: [],
    })
    const answer = async (): Promise<unknown> =>
      await handlers.get(trafficSeries.name)?.({} as never, request)
    await expect(answer()).rejects.toMatchObject({ code: 'COULD_NOT_VALIDATE' })
  })
})
