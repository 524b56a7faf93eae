import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { MetricsSchema } from '../../proto/gen/router_pb.ts'
import { EventBus } from '../../src/events/event-bus.ts'
import { eventLimits } from '../../src/events/limits.ts'
import { DialCounter } from '../../src/events/sources/dial-counter.ts'
import { ObservationEvents } from '../../src/events/sources/observation-events.ts'
import { createLinkHandler } from '../../src/fabric/links/link-handler.ts'
import { LinkTable } from '../../src/fabric/links/link-table.ts'
import { readRouterMetrics } from '../../src/fabric/links/router-metrics.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { settle } from '../channel/pipe.ts'
import { RouterStage } from '../fabric/stage.ts'

// Goal: readers of events get the bytes of circuits from older and newer OpenZiti routers.

let stage: RouterStage
let bus: EventBus
beforeEach(() => {
  stage = new RouterStage()
  bus = new EventBus({
    selfId: 'ctrl1',
    generation: 1,
    startedAtMs: 1,
    limits: eventLimits,
    appliedIndex: () => 7,
  })
  bus.want(['usage'])
  const live = new ObservationEvents({
    bus,
    clock: systemClock,
    dials: new DialCounter(systemClock.nowMs()),
    isConnected: () => true,
    state: { findAll: () => [] },
  })
  stage.channels.add(
    createLinkHandler({
      table: new LinkTable({
        owner: 'ctrl1',
        isBarred: () => false,
        isConnected: () => true,
        sendGone: () => undefined,
        onGone: () => undefined,
      }),
      log: { info: () => undefined, warn: () => undefined },
      isCertificateOf: () => false,
      onOtherFault: () => undefined,
      onMetrics: (metrics) => live.publishFact({ kind: 'routerMetrics', metrics }),
    }),
  )
})
afterEach(() => stage.channels.stop())

async function told(
  metrics: Parameters<typeof create<typeof MetricsSchema>>[1],
): Promise<readonly Record<string, unknown>[]> {
  const pipe = await stage.dial('er1')
  pipe.say({ contentType: 1007, body: toBinary(MetricsSchema, create(MetricsSchema, metrics)) })
  await settle()
  const { ring } = bus
  return Array.from({ length: ring.end }, (_, at) => {
    return JSON.parse(ring.at(at)?.text ?? '{}') as Record<string, unknown>
  })
}

test('usage events contain the bytes of each known counter of a circuit in an interval, with the tags of the circuit', async () => {
  const tags = { clientId: 'ann', hostId: 'web', serviceId: 's1' }
  const bucket = { values: { 'ingress.rx': 26n, 'fabric.tx': 30n, nonsense: 1n }, tags }
  const counter = { intervalStartUtc: 1_737_145_920n, intervalLength: 60n, buckets: { c1: bucket } }
  const events = await told({ sourceId: 'another router', usageCounters: [counter] })
  const common = {
    namespace: 'usage',
    version: 2,
    source_id: 'er1',
    circuit_id: 'c1',
    interval_start_utc: 1_737_145_920,
    interval_length: 60,
    tags,
  }
  expect(events).toEqual([
    expect.objectContaining({ ...common, event_type: 'usage.ingress.rx', usage: 26 }),
    expect.objectContaining({ ...common, event_type: 'usage.fabric.tx', usage: 30 }),
  ])
})

test('usage events of an older router have no tags', async () => {
  const buckets = [{ intervalStartUtc: 60n, values: { c1: 5n, c2: 6n } }]
  const intervalCounters = { 'usage.egress.tx': { intervalLength: 60n, buckets } }
  const events = await told({ intervalCounters })
  const type = 'usage.egress.tx'
  expect(events).toEqual([
    expect.objectContaining({ event_type: type, circuit_id: 'c1', usage: 5, tags: {} }),
    expect.objectContaining({ event_type: type, circuit_id: 'c2', usage: 6, tags: {} }),
  ])
})

test('usage events are created for all 500 circuits in one usage counter that covers a minute, as OpenZiti routers send it', async () => {
  const ids = Array.from({ length: 500 }, (_, at) => `circuit ${at}`)
  const tags = { clientId: 'ann', hostId: 'web', serviceId: 's1' }
  const values = { 'ingress.rx': 1n, 'ingress.tx': 1n, 'fabric.rx': 1n, 'fabric.tx': 1n }
  const buckets = Object.fromEntries(ids.map((id) => [id, { values, tags }]))
  const events = await told({ usageCounters: [{ intervalLength: 60n, buckets }] })
  expect(new Set(events.map((event) => event['circuit_id']))).toEqual(new Set(ids))
  expect(events).toHaveLength(4 * ids.length)
})

test('usage events are created from one report only up to a maximum number', () => {
  const values = { 'ingress.rx': 1n, 'ingress.tx': 1n, 'egress.rx': 1n, 'egress.tx': 1n }
  const ids = Array.from({ length: routerLimits.routerUsagesMax }, (_, at) => `c${at}`)
  const buckets = Object.fromEntries(ids.map((id) => [id, { values }]))
  const report = create(MetricsSchema, { usageCounters: [{ intervalLength: 60n, buckets }] })
  const { usages } = readRouterMetrics('er1', report)
  expect(usages).toHaveLength(routerLimits.routerUsagesMax)
  const last = routerLimits.routerUsagesMax / 4 - 1
  expect(usages.at(-1)).toMatchObject({ circuitId: `c${last}`, kind: 'egress.tx', lengthS: 60 })
})

test('usage events are not created from a report that another controller forwards', async () => {
  const counter = { intervalLength: 60n, buckets: { c1: { values: { 'ingress.rx': 1n } } } }
  expect(await told({ doNotPropagate: true, usageCounters: [counter] })).toEqual([])
})
