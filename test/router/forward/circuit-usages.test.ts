import { fromBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { MetricsSchema } from '../../../proto/gen/router_pb.ts'
import { messageBounds } from '../../../src/channel/message-bounds.ts'
import { protobufBodyFault } from '../../../src/channel/wire-scan.ts'
import { readRouterMetrics } from '../../../src/fabric/links/router-metrics.ts'
import { routerLimits } from '../../../src/fabric/limits.ts'
import {
  type UsageCounterKind,
  usageMessage,
  type UsageReport,
} from '../../../src/channel/messages/reports.ts'
import { CarriedCircuit } from '../../../src/router/forward/carried-circuits.ts'
import { CircuitUsageCounters } from '../../../src/router/forward/circuit-usage-counters.ts'
import { reportLimits } from '../../../src/router/reports/limits.ts'
import { forwardLimits } from '../../../src/router/forward/limits.ts'
import { messageContentLimits } from '../../../src/channel/messages/limits.ts'
import { eventually } from '../support.ts'
import { Peer } from './peer.ts'
import { endsOf, linked, TestController, TestDialer, TestRouter } from './support.ts'

// Goal: the bytes of each circuit are reported once, completely and within bounds. Method: two
// routers and a link; the test reads the reports as controllers do.

const tags = { clientId: 'ann', hostId: 'web', serviceId: 's1' }
const circuit = endsOf('circuit1')
const controller = new TestController()
const routers: TestRouter[] = []
let one: TestRouter
let two: TestRouter
beforeEach(() => {
  one = new TestRouter('r1')
  two = new TestRouter('r2')
  routers.push(one, two)
  for (const router of routers) controller.connect(router)
})
afterEach(() => {
  for (const { forwarder } of routers.splice(0)) forwarder.stop()
})

function told({ forwarder }: TestRouter): readonly object[] {
  const reports: UsageReport[] = []
  forwarder.usages.sendUsage((report) => reports.push(report) > 0)
  return reports.flatMap(({ circuits }) =>
    circuits.map(({ circuitId, bytes, tags: own }) => ({ circuitId, ...bytes, tags: own })),
  )
}

test('each router reports the bytes that it received and sent at circuit endpoints and over links, and reports them only once', async () => {
  const dialer = new TestDialer(two, controller)
  await controller.lay(circuit, [one, two], [linked(one, two, 'l1')], { tags })
  const ingress = one.attach(controller, circuit, false)
  const egress = dialer.placeOf(circuit)
  ingress.send('hello')
  ingress.send('an acknowledgement', 1101)
  await eventually(() => egress.got).toHaveLength(2)
  egress.send('ok')
  await eventually(() => ingress.bodies).toEqual(['ok'])
  const of = { circuitId: circuit.id, tags }
  const ofFirst = { ...of, 'ingress.rx': 5, 'fabric.tx': 5, 'fabric.rx': 2, 'ingress.tx': 2 }
  const ofSecond = { ...of, 'fabric.rx': 5, 'egress.tx': 5, 'egress.rx': 2, 'fabric.tx': 2 }
  expect(told(one)).toEqual([ofFirst])
  expect(told(two)).toEqual([ofSecond])
  expect([told(one), told(two)]).toEqual([[], []])
})

test('the bytes of a circuit that has ended are included in the next usage report', async () => {
  const dialer = new TestDialer(two, controller)
  await controller.lay(circuit, [one, two], [linked(one, two, 'l1')])
  one.attach(controller, circuit, false).send('hello')
  await eventually(() => dialer.placeOf(circuit).bodies).toEqual(['hello'])
  for (const router of routers) controller.unroute(router, circuit.id, true)
  await eventually(() => one.forwarder.circuit(circuit.id)).toBeUndefined()
  expect(told(one)).toEqual([{ circuitId: circuit.id, tags: {}, 'ingress.rx': 5, 'fabric.tx': 5 }])
})

test('the usage of a stream contains the bytes that its application sends, without retransmissions', async () => {
  const dialer = new TestDialer(one, controller)
  await controller.lay(circuit, [one], [])
  const client = new Peer()
  client.end = one.forwarder.open(
    { id: circuit.id, address: circuit.ingress, isTerminator: false, owner: { id: 'c1' } },
    client,
  )
  client.send(Buffer.from('hello'))
  const host = dialer.placeOf(circuit)
  // The host acknowledges nothing, so the sender sends all payloads again.
  await eventually(() => host.bodies.filter((body) => body === 'hello').length).toBeGreaterThan(1)
  expect(told(one)).toMatchObject([{ 'ingress.rx': 5 }])
})

let nowMs = 0
const clock = { nowMs: () => 1_000_000_000 + nowMs, monotonicMs: () => nowMs }
const newCircuit = (id: string): CarriedCircuit => new CarriedCircuit(id, 'c1', 0)

test('usage counts are kept while no controller is connected, and then cover a longer interval', () => {
  nowMs = 0
  const usages = new CircuitUsageCounters(clock)
  usages.count(newCircuit('a'), 'ingress.rx', 5)
  nowMs = 60_000
  expect(usages.sendUsage(() => false)).toBe(false)
  usages.count(newCircuit('a'), 'ingress.rx', 6)
  nowMs = 120_000
  const reports: UsageReport[] = []
  expect(usages.sendUsage((report) => reports.push(report) > 0)).toBe(true)
  expect(reports).toMatchObject([
    {
      startS: 1_000_000,
      lengthS: 120,
      circuits: [{ circuitId: 'a', bytes: { 'ingress.rx': 11 } }],
    },
  ])
})

test('a new circuit above the limit of counted circuits triggers a report, and bytes that still cannot be counted are recorded as lost', () => {
  const usages = new CircuitUsageCounters(clock, 2)
  let isThere = false
  const reports: UsageReport[] = []
  usages.onFull = () => usages.sendUsage((report) => isThere && reports.push(report) > 0)
  for (const id of ['a', 'b', 'c']) usages.count(newCircuit(id), 'egress.tx', 7)
  expect(usages.lostBytes).toBe(7)
  isThere = true
  usages.count(newCircuit('d'), 'egress.tx', 7)
  expect(reports.map(({ circuits }) => circuits.map((one) => one.circuitId))).toEqual([['a', 'b']])
  expect(usages.lostBytes).toBe(7)
})

test('the largest usage report is within the limits of controllers, and is decoded completely', () => {
  const usages = new CircuitUsageCounters(clock)
  const kinds: UsageCounterKind[] = [
    'ingress.rx',
    'ingress.tx',
    'egress.rx',
    'egress.tx',
    'fabric.rx',
    'fabric.tx',
  ]
  const { usageCircuitsPerReportMax } = forwardLimits
  const { circuitNameCharactersMax } = messageContentLimits
  const longest = (text: string): string => text.padStart(circuitNameCharactersMax, 'x')
  for (let at = 0; at < usageCircuitsPerReportMax + 1; at += 1) {
    const carried = newCircuit(longest(`${at}`))
    carried.tags = { clientId: longest('a'), hostId: longest('b'), serviceId: longest('c') }
    for (const kind of kinds) usages.count(carried, kind, Number.MAX_SAFE_INTEGER)
  }
  const bodies: Uint8Array[] = []
  usages.sendUsage((report) => {
    const { body } = usageMessage('r1', report, { eventId: 'e', atMs: 1 })
    return bodies.push(body ?? new Uint8Array()) > 0
  })
  const { bytesMax, elementsMax, fieldElementsMax } = messageBounds.metrics
  expect(bodies).toHaveLength(2)
  expect(bodies[0]?.length).toBeLessThan(Math.min(bytesMax, reportLimits.usageQueuedBytesMax))
  for (const body of bodies) {
    expect(protobufBodyFault(MetricsSchema, body, elementsMax, fieldElementsMax)).toBeNull()
  }
  const read = bodies.map((body) => readRouterMetrics('r1', fromBinary(MetricsSchema, body)).usages)
  expect(read.map(({ length }) => length)).toEqual([usageCircuitsPerReportMax * 6, 6])
  expect(usageCircuitsPerReportMax * 6).toBeLessThan(routerLimits.routerUsagesMax)
})
